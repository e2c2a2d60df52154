"""AdvCls: a second network looks for the group in the representation, and so does a linear probe in closed form."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fairbits.estimators.base import VanillaClassifier, log_softmax
from fairbits.information import WeighedGroups, group_entropy
from fairbits.nn.code_networks import HeadedNet, Inputs, dense_layers, feature_layers
from fairbits.settings import layer_sizes, setting, tunable
from fairbits.training import Batch

RIDGE = 1e-3  # of the linear probe, relative to the variance of a unit


class AdversarialClassifier(VanillaClassifier):
    """Hide the group from an adversary that looks for it in the representation (AdvCls, Xie et al. 2017).

    Encoder and predictor minimise (1 - gamma) CE_y + gamma max(0, H(S) - CE_s), in bits and added over the sensitive
    columns, where CE_y and CE_s are the cross-entropies of the predictor and of the adversary. H(S) - CE_s is what the
    adversary knows of S beyond the groups' shares. The adversary minimises CE_s, whatever gamma is; it takes some
    steps before every step of the others.

    While the adversary beats chance this is the published game, (1 - gamma) CE_y - gamma CE_s up to a constant; an
    adversary worse than chance, which would soon correct itself, gives no reward. Other differences: the encoder does
    not see S, so predictions need no S; every sensitive column has its own adversary. On validation rows, where the
    adversary may lag behind the encoder, the larger of its information and that of a linear probe fitted to these rows
    (`linear_information`) counts.

    Parameters
    ----------
    gamma : weight of the adversary's information, 0 to 1
    representation_size : tanh units of the representation. A wide layer holds nearly all of the row, so a good
        adversary reads S from it whatever the encoder does
    adversary_sizes : widths of the adversary's hidden layers; () is a linear one
    opponent_steps, opponent_learning_rate : the adversary's steps before each of the others, and its learning rate
    reversal : one step for all by gradient reversal (Ganin et al. 2016), at `learning_rate`, as in the authors' later
        code, but without gamma slowing the adversary down; the two settings before have no effect then

    The other parameters are those of all methods; see `InvariantClassifier`.

    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = AdversarialClassifier(max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=data.s).transform(data.X).shape
    (200, 8)
    """

    gamma: float = tunable(0.5, 0.0, 1.0, at_least=0, at_most=1)
    representation_size: int = setting(8, at_least=1, whole=True)
    adversary_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    opponent_steps: int = setting(3, at_least=1, whole=True)
    opponent_learning_rate: float = tunable(3e-3, 1e-4, 1e-2, log=True, above=0)
    reversal: bool = setting(False, one_of=(False, True))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma", "opponent_learning_rate")
    protects: ClassVar[bool] = True

    @property
    def opponent(self) -> str | None:
        """Name the part that is trained in turn; none if all parts train together or there are no groups."""
        return "adversary" if self.groups_ and not self.reversal else None

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        encoder, width = feature_layers(inputs, self.channels, self.hidden_sizes)
        sizes = (self.representation_size, *self.adversary_sizes)
        adversaries = [nn.Sequential(*dense_layers(sizes), nn.Linear(sizes[-1], len(names))) for names in self.groups_]
        layers = nn.Sequential(encoder, nn.Linear(width, sizes[0]), nn.Tanh())
        net: Any = HeadedNet(layers, sizes[0], n_classes)
        net.adversary = nn.ModuleList(adversaries)
        return net

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        out = net(batch.x)
        cross_entropy = self.cross_entropy(log_softmax(out.logits), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        information = _added(self.found(map(_frozen, net.adversary), out.hidden, batch))
        total = torch.lerp(cross_entropy, information, scalars["gamma"] * scalars["ramp"])
        if self.reversal:
            total = total + _added(self.errors(net.adversary, out.hidden.detach(), batch))
        return {"total": total, "cross_entropy": cross_entropy, "information": information}

    def opponent_loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad():
            hidden = net.features(batch.x)
        return {"total": _added(self.errors(net.adversary, hidden, batch))}

    def errors(self, adversary: Iterable[Callable], hidden: Tensor, batch: Batch) -> list[Tensor]:
        """Return the adversaries' cross-entropies about each sensitive column, in bits."""
        guesses = (log_softmax(a(hidden)) for a in adversary)
        return [self.cross_entropy(g, batch._replace(y=s)) for g, s in zip(guesses, batch.s.unbind(-1), strict=True)]

    def found(self, adversary: Iterable[Callable], hidden: Tensor, batch: Batch) -> list[Tensor]:
        """Return what the adversaries know of each column beyond the groups' shares, in bits; not less than 0."""
        errors, mass = self.errors(adversary, hidden, batch), batch.weight.sum(-1)
        cells = zip(errors, batch.prepared, strict=True)
        return [torch.relu(group_entropy(groups.prior) * mass - error) for error, (groups, _) in cells]

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss, with the information of the adversary or of a linear probe, whichever is more."""
        terms = super().evaluate(net, batch, scalars)
        if not self.groups_:
            return terms
        hidden = net.features(batch.x)
        adversary = self.found(net.adversary, hidden, batch)
        linear = [linear_information(hidden, groups) for groups, _ in batch.prepared]
        terms["information"] = _added(torch.maximum(*both) for both in zip(adversary, linear, strict=True))
        terms["total"] = torch.lerp(terms["cross_entropy"], terms["information"], scalars["gamma"])
        return terms


def _frozen(adversary: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return an adversary as a function that passes gradients to its input and not to its parameters."""
    parameters = {name: p.detach() for name, p in adversary.named_parameters()}
    return lambda x: functional_call(adversary, parameters, (x,))


def _added(values: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, values)


def linear_information(x: Tensor, groups: WeighedGroups) -> Tensor:
    """Return what a linear probe of rows x (n, d) finds of their groups, in bits; each row is left out in turn.

    With phi^2 = chi^2 / n the share of the groups' indicators that it explains, -(K - 1)/2 log2(1 - phi^2 / (K - 1)),
    which is exact for two normal variables and for weak dependence, and at most the groups' entropy.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.arange(100) % 2, n_groups=2)
    >>> linear_information((torch.arange(100) % 2).unsqueeze(-1) + torch.zeros(100, 1), groups)
    tensor(1.)
    """
    weight, directions = groups.prior @ groups.row_weights, max(groups.prior.shape[-1] - 1, 1)  # (n,): shares of rows
    indicators = (groups.row_weights > 0).to(x.dtype).mT - groups.prior  # (n, K)
    left = _left_out_residuals(_standardised(x, weight), indicators, weight)
    explained = (weight.unsqueeze(-1) * (indicators.square() - left.square())).sum(-2) / groups.prior.clamp(min=1e-6)
    phi = explained.sum(-1).clamp(min=0) / directions
    bits = torch.log2((1 - phi).clamp(min=1e-6)) * (directions / -2)
    return torch.minimum(bits, group_entropy(groups.prior))


def _left_out_residuals(z: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return what a ridge regression of centred targets (n, K) on z (n, d) misses of a row, fitted to the rest."""
    weighted = weight.unsqueeze(-1) * z
    inverse = torch.linalg.inv(z.mT @ weighted + RIDGE * torch.eye(z.shape[-1], dtype=z.dtype, device=z.device))
    missed = target - z @ (inverse @ (weighted.mT @ target))
    leverage = weight + ((z @ inverse) * weighted).sum(-1)
    return missed / (1 - leverage).clamp(min=1e-3).unsqueeze(-1)


def _standardised(x: Tensor, weight: Tensor) -> Tensor:
    """Return x (n, d) with mean 0 and variance 1 of every column; constant ones stay 0."""
    x = x - weight @ x
    variance = weight @ x.square()
    return x / (variance + 1e-6 * variance.mean() + 1e-12).sqrt()
