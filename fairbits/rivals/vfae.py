"""VFAE: the variational fair autoencoder, and the maximum mean discrepancy that it penalises."""

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fairbits.estimators.base import log_softmax
from fairbits.information import WeighedGroups
from fairbits.information.words import normalised
from fairbits.nn import Inputs, feature_layers
from fairbits.rivals.group_columns import GroupCells, flat_columns, indicators, n_columns
from fairbits.rivals.latent import LatentClassifier, NormalLayers, added, divergence, mean_over_pairs
from fairbits.settings import setting, tunable
from fairbits.training import Batch


class FourierFeatures(nn.Module):
    """Random features psi whose products are a Gaussian kernel: psi(x) psi(x') ~ exp(-|x - x'|^2 / width).

    psi(x) = sqrt(2/D) cos(sqrt(2/width) x W + b),  W standard normal, b uniform on [0, 2 pi]  (Rahimi and Recht 2007)

    W and b come from a seed of their own: the same in every network, and nothing moves them.

    >>> FourierFeatures(3, width=6.0)(torch.zeros(5, 3)).shape
    torch.Size([5, 500])
    """

    W: Tensor
    b: Tensor

    def __init__(self, n_inputs: int, *, width: float, n_features: int = 500, seed: int = 0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("W", torch.randn(n_inputs, n_features, generator=generator), persistent=False)
        self.register_buffer("b", 2 * math.pi * torch.rand(n_features, generator=generator), persistent=False)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        return math.sqrt(2 / len(self.b)) * torch.cos(math.sqrt(2 / self.width) * x @ self.W + self.b)


def standardised(x: Tensor, weight: Tensor) -> Tensor:
    """Return columns (n, d) of weighted mean 0 and variance 1, so that a discrepancy cannot hide in their scale."""
    share = normalised(weight)
    centred = x - share @ x
    return centred * torch.rsqrt(share @ centred.square() + 1e-8)


def mean_discrepancy(features: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the squared maximum mean discrepancy between groups, given the features (n, D) of their rows.

    Of two groups it is |E psi(x) - E psi(x')|^2; of more, the mean over pairs of groups, which count by the product
    of their shares. Without bias: no row is compared with itself, so that groups of equal distribution give 0 on
    average, whatever their spread and size. Groups of fewer than two rows are left out.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=3)
    >>> mean_discrepancy(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), groups)
    tensor(2.)
    """
    weights, prior = groups  # (K, n), (K,)
    means = weights @ features
    products = means @ means.mT  # (K, K)
    alone = weights.square().sum(-1)  # 1 where a group has one row
    own = weights.square() @ features.square().sum(-1)
    eps = torch.finfo(features.dtype).eps
    within = (products.diagonal(dim1=-2, dim2=-1) - own) / (1 - alone).clamp(min=eps)
    gaps = within.unsqueeze(-1) + within.unsqueeze(-2) - 2 * products
    return mean_over_pairs(gaps, prior * (alone < 1 - 4 * eps))


class VFAEOutput(NamedTuple):
    """What the network computes of a batch."""

    z1: Tensor  # (n, m) one draw
    logits: Tensor  # (n, classes) of q(y|z1)
    reconstruction: Tensor  # (n,) -log2 p(x|z1,s)
    divergence: Tensor  # (n,) KL(q(z1|x,s) || p(z1|z2,y)) + KL(q(z2|z1,y) || N(0, I)), in bits


class VFAENet(nn.Module):
    """The five distributions q(z1|x,s), q(z2|z1,y), p(z1|z2,y), p(x|z1,s), q(y|z1), and the features of the penalty."""

    def __init__(self, method: "VFAEClassifier", inputs: Inputs, n_classes: int):
        super().__init__()
        m, hidden_sizes, self.group_sizes = method.latent_size, method.hidden_sizes, tuple(method.group_sizes)
        self.noise_size, self.n_classes = 2 * m, n_classes
        self.cells = GroupCells(self.group_sizes if method.encode_sensitive else ())
        self.features, width = feature_layers(inputs, method.channels, ())
        self.first = NormalLayers((width + sum(self.cells.sizes), *hidden_sizes), m)
        self.second = NormalLayers((m + n_classes, *hidden_sizes), m)
        self.prior = NormalLayers((m + n_classes, *hidden_sizes), m)
        self.decoder = NormalLayers((m + sum(self.group_sizes), *hidden_sizes), n_columns(inputs), spread=False)
        self.head = nn.Linear(m, n_classes)
        self.fourier = FourierFeatures(m, width=2.0 * m)  # the mean squared distance of standardised rows

    def forward(self, x: Tensor, y: Tensor, s: Tensor, noise: Tensor) -> VFAEOutput:
        noise1, noise2 = noise.chunk(2, -1)
        label = indicators(y.unsqueeze(-1), (self.n_classes,))
        q1 = self.first(self.features(x), self.cells(s))
        z1 = q1.draw(noise1)
        q2 = self.second(z1, label)
        p1 = self.prior(q2.draw(noise2), label)
        reconstruction = self.decoder(z1, indicators(s, self.group_sizes)).bits(flat_columns(x))
        return VFAEOutput(z1, self.head(z1), reconstruction, divergence(q1, p1) + divergence(q2))

    def probabilities(self, x: Tensor) -> Tensor:
        """Return q(y | mean of q(z1|x,s)), averaged over s ~ p(s).  (n, classes)"""
        features = self.features(x)
        return self.cells.mean(lambda s: torch.softmax(self.head(self.first(features, s).mean), -1), x.shape[0])

    def latent_mean(self, x: Tensor) -> Tensor:
        """Return the mean of z1 over s ~ p(s).  (n, m)"""
        features = self.features(x)
        return self.cells.mean(lambda s: self.first(features, s).mean, x.shape[0])

    def latent_draw(self, x: Tensor, noise: Tensor) -> Tensor:
        """Draw s ~ p(s), then z1 ~ q(z1|x,s).  (n, m)"""
        noise1, noise2 = noise.chunk(2, -1)
        return self.first(self.features(x), self.cells.draw(noise2[:, 0])).draw(noise1)


class VFAEClassifier(LatentClassifier):
    """The variational fair autoencoder (Louizos et al. 2016), fitted to labelled rows.

    Minimise, in bits but for the last term,

        E[-log2 p(x|z1,s)] + KL(q(z1|x,s) || p(z1|z2,y)) + KL(q(z2|z1,y) || N(0, I)) + alpha E[-log2 q(y|z1)]
        + beta MMD(z1 | s)

    MMD is the squared maximum mean discrepancy between the groups' z1, by 500 random Fourier features. S is not
    needed for predictions: they are averaged over s ~ p(s), the groups' shares in the training rows.

    The published encoder, q(z1|x,s), uses S to remove from z1 what S adds. So beta protects codes made with the true S,
    but its effect on predictions made without S is erratic (on COMPAS the MMD goes to 0 and the GPA stays).
    ``encode_sensitive=False`` makes the encoder q(z1|x), so that the penalty acts on what is used.

    Differences from the published version: z1 is standardised before the MMD, which otherwise falls to 0 by the scale
    of z1 alone, and the MMD is the unbiased estimate; p(x|z1,s) has variance 1; the epoch is chosen by alpha *
    cross-entropy + beta * MMD on the validation rows, without the reconstruction.

    Parameters
    ----------
    alpha : weight of the label; the reconstruction is a sum over columns, so more columns need a larger weight
    beta : weight of the MMD
    encode_sensitive : whether the encoder reads S, as published

    The other parameters are those of `LatentClassifier`.
    """

    alpha: float = tunable(100.0, 1.0, 1000.0, log=True, at_least=0)
    beta: float = tunable(1000.0, 10.0, 10_000.0, log=True, at_least=0)
    encode_sensitive: bool = setting(True, one_of=(True, False))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "alpha", "beta")

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        return VFAENet(self, inputs, n_classes)

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        net.cells.count(s, weight)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        out = net(batch.x, batch.y, batch.s, batch.noise)
        terms = {
            "cross_entropy": self.cross_entropy(log_softmax(out.logits), batch),
            "reconstruction": batch.weight @ out.reconstruction,
            "divergence": batch.weight @ out.divergence,
            "discrepancy": self.discrepancy(net, out.z1, batch),
        }
        bound = terms["reconstruction"] + terms["divergence"]
        return {"total": bound + self.criterion(terms, scalars), **terms}

    def discrepancy(self, net: VFAENet, z1: Tensor, batch: Batch) -> Tensor:
        """Return the MMD of a batch, added up over the sensitive columns."""
        features = net.fourier(standardised(z1, batch.weight))
        return added((mean_discrepancy(features, groups) for groups, _ in batch.prepared), features)

    def criterion(self, terms: dict[str, Tensor], scalars: dict[str, Tensor]) -> Tensor:
        return scalars["alpha"] * terms["cross_entropy"] + scalars["beta"] * scalars["ramp"] * terms["discrepancy"]
