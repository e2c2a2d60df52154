"""VIB: an information bottleneck that hides S without an adversary."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators.base import log_softmax
from fairbits.nn import Inputs, feature_layers
from fairbits.rivals.group_columns import flat_columns, indicators, n_columns
from fairbits.rivals.latent import LatentClassifier, Normal, NormalLayers, divergence
from fairbits.settings import tunable
from fairbits.training import Batch


class VIBNet(nn.Module):
    """Encoder q(z|x), which does not read S; decoder p(x|z,s), which does; head p(y|z)."""

    def __init__(self, method: LatentClassifier, inputs: Inputs, n_classes: int):
        super().__init__()
        self.noise_size = m = method.latent_size
        self.features, width = feature_layers(inputs, method.channels, ())
        wide, hidden_sizes = m + sum(method.group_sizes), method.hidden_sizes
        self.encoder = NormalLayers((width, *hidden_sizes), m)
        self.decoder = NormalLayers((wide, *hidden_sizes), n_columns(inputs), spread=False)
        self.head = nn.Linear(m, n_classes)

    def latent(self, x: Tensor) -> Normal:
        """Return q(z|x)."""
        return self.encoder(self.features(x))

    def probabilities(self, x: Tensor) -> Tensor:
        """Return p(y | mean of q(z|x)).  (n, classes)"""
        return torch.softmax(self.head(self.latent_mean(x)), -1)

    def latent_mean(self, x: Tensor) -> Tensor:
        return self.latent(x).mean

    def latent_draw(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.latent(x).draw(noise)


class VIBClassifier(LatentClassifier):
    """Penalise an upper bound of I(Z;S) that needs no adversary (Moyer et al. 2018).

    Minimise, in bits, with rate = KL(q(z|x) || N(0, I)),

        E[-log2 p(y|z)] + beta rate + gamma (rate + E[-log2 p(x|z,s)])

    The last bracket is what can be moved of  I(Z;S) <= I(Z;X) - H(X|S) + E[-log2 p(x|z,s)],  I(Z;X) <= rate: the rate
    is the price of all information in Z, and the decoder, which reads S, gives back what S does not explain. H(X|S) is
    an unknown constant of the data, so only differences of the "bound" in the history have a meaning. With gamma 0 this
    is the deep variational information bottleneck (Alemi et al. 2017).

    Differences from the published version: the rate bounds I(Z;X), not the mean divergence of pairs of rows; p(x|z,s)
    has variance 1; the epoch is chosen by the loss on the validation rows, with the cross-entropy of the predictions.

    Parameters
    ----------
    gamma : weight of the bound on I(Z;S); the reconstruction is a sum over columns, so fewer columns need a larger one
    beta : weight of the rate alone

    The other parameters are those of `LatentClassifier`.
    """

    gamma: float = tunable(0.3, 0.01, 3.0, log=True, at_least=0)
    beta: float = tunable(0.001, 1e-5, 0.1, log=True, at_least=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma", "beta")

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        return VIBNet(self, inputs, n_classes)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        q = net.latent(batch.x)
        z = q.draw(batch.noise)
        rate = batch.weight @ divergence(q)
        reconstruction = net.decoder(z, indicators(batch.s, self.group_sizes)).bits(flat_columns(batch.x))
        terms = {
            "cross_entropy": self.cross_entropy(log_softmax(net.head(z)), batch),
            "rate": rate,
            "bound": rate + batch.weight @ reconstruction,
        }
        return {"total": self.criterion(terms, scalars), **terms}

    def criterion(self, terms: dict[str, Tensor], scalars: dict[str, Tensor]) -> Tensor:
        total = terms["cross_entropy"] + scalars["beta"] * terms["rate"]
        return total + scalars["gamma"] * scalars["ramp"] * terms["bound"] if self.groups_ else total
