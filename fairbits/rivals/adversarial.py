"""AdvCls: a second network looks for the group in the representation."""

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fairbits.estimators.base import log_softmax
from fairbits.estimators.cells import weigh_cells
from fairbits.estimators.settings import layer_sizes, setting, tunable
from fairbits.estimators.vanilla import VanillaClassifier
from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput, Inputs, dense_layers, feature_layers
from fairbits.rivals.linear_probe import linear_information
from fairbits.training import Batch


class AdversarialNet(nn.Module):
    """x -> features -> representation -> head, and an adversary on the representation for each sensitive column."""

    noise_size = 0

    def __init__(self, encoder: nn.Module, width: int, size: int, n_classes: int, adversaries: Iterable[nn.Module]):
        super().__init__()
        self.features = nn.Sequential(encoder, nn.Linear(width, size), nn.Tanh())
        self.head = nn.Linear(size, n_classes)
        self.adversary = nn.ModuleList(adversaries)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> HiddenOutput:
        hidden = self.features(x)
        return HiddenOutput(hidden, self.head(hidden))


class AdversarialClassifier(VanillaClassifier):
    """Hide the group from an adversary that looks for it in the representation (AdvCls).

    Encoder and predictor minimise (1 - gamma) CE_y + gamma max(0, H(S) - CE_s), in bits and added over the sensitive
    columns, where CE_y and CE_s are the cross-entropies of the predictor and of the adversary. H(S) - CE_s is what the
    adversary knows of S beyond the groups' shares. The adversary minimises CE_s, whatever gamma is; it takes some
    steps before every step of the others.

    Where the adversary knows anything this is the game of Xie et al., (1 - gamma) CE_y - gamma CE_s up to a constant,
    but there is nothing to gain from an adversary that is wrong beyond ignorance, which it would soon correct: without
    the maximum the game has no lower end. Other differences: the encoder does not see S, so that predictions need no
    S; several columns have an adversary each.

    The adversary alone is a poor judge of an epoch, since it may be behind the encoder. On validation rows its
    knowledge counts, or that of a linear probe fitted to the same rows (`linear_information`), whichever is more.

    Parameters
    ----------
    gamma : weight of what the adversary knows, 0 to 1
    representation_size : tanh units of the representation. From a wide layer, which holds nearly all of the row, a
        good adversary reads S whatever the encoder does
    adversary_sizes : widths of the adversary's hidden layers; () is a linear one
    opponent_steps, opponent_learning_rate : the adversary's steps before each of the others, and its learning rate
    reversal : one step for all by gradient reversal, at `learning_rate`, as in the authors' later code, but without
        gamma slowing the adversary down; the two settings before have no effect then

    The other parameters are those of all methods; see `InvariantClassifier`.

    References
    ----------
    Xie et al. 2017, "Controllable invariance through adversarial feature learning"; Ganin et al. 2016 for `reversal`.

    Examples
    --------
    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = AdversarialClassifier(max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model = model.fit(data.X, data.y, sensitive_features=data.s)
    >>> model.transform(data.X).shape
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
        """Name the part that is trained in turn; none where all train together, or nobody is to be found."""
        return "adversary" if self.groups_ and not self.reversal else None

    def build(self, inputs: Inputs, n_classes: int) -> AdversarialNet:
        encoder, width = feature_layers(inputs, self.channels, self.hidden_sizes)
        sizes = (self.representation_size, *self.adversary_sizes)
        adversaries = [nn.Sequential(*dense_layers(sizes), nn.Linear(sizes[-1], len(names))) for names in self.groups_]
        return AdversarialNet(encoder, width, self.representation_size, n_classes, adversaries)

    def prepare(self, y: Tensor, s: Tensor, weight: Tensor) -> tuple[tuple[WeighedGroups, Tensor], ...]:
        """Weigh the groups of every sensitive column, and measure their entropy: (groups, bits)."""
        columns = [groups for (groups,) in weigh_cells(y, s, weight, self.group_sizes)]
        bits = [torch.special.entr(g.prior).sum(-1) / math.log(2) * weight.sum(-1) for g in columns]
        return tuple(zip(columns, bits, strict=True))

    # ------------------------------------------------------------------ the game

    def loss(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        out = net(batch.x)
        cross_entropy = self.cross_entropy(log_softmax(out.logits), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        information = _added(self.found(_frozen(net.adversary), out.hidden, batch))
        total = torch.lerp(cross_entropy, information, scalars["gamma"] * scalars["ramp"])
        if self.reversal:
            total = total + _added(self.errors(net.adversary, out.hidden.detach(), batch))
        return {"total": total, "cross_entropy": cross_entropy, "information": information}

    def opponent_loss(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad():
            hidden = net.features(batch.x)
        return {"total": _added(self.errors(net.adversary, hidden, batch))}

    def errors(self, adversary: Iterable[Callable], hidden: Tensor, batch: Batch) -> list[Tensor]:
        """Return the adversaries' cross-entropies about each sensitive column, in bits."""
        guesses = (log_softmax(a(hidden)) for a in adversary)
        return [self.cross_entropy(g, batch._replace(y=s)) for g, s in zip(guesses, batch.s.unbind(-1), strict=True)]

    def found(self, adversary: Iterable[Callable], hidden: Tensor, batch: Batch) -> list[Tensor]:
        """Return what the adversaries know of each column beyond the groups' shares, in bits; not less than 0."""
        errors = self.errors(adversary, hidden, batch)
        return [torch.relu(bits - error) for error, (_, bits) in zip(errors, batch.prepared, strict=True)]

    def evaluate(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loss, with what the adversary or a fresh linear probe knows, whichever is more."""
        terms = super().evaluate(net, batch, scalars)
        if not self.groups_:
            return terms
        hidden = net.features(batch.x)
        adversary = self.found(net.adversary, hidden, batch)
        linear = [linear_information(hidden, groups) for groups, _ in batch.prepared]
        terms["information"] = _added(torch.maximum(*both) for both in zip(adversary, linear, strict=True))
        terms["total"] = torch.lerp(terms["cross_entropy"], terms["information"], scalars["gamma"])
        return terms


def _frozen(adversary: nn.ModuleList) -> list[Callable[[Tensor], Tensor]]:
    """Return the adversaries as functions that pass gradients on and take none."""

    def frozen(a: nn.Module) -> Callable[[Tensor], Tensor]:
        parameters = {name: p.detach() for name, p in a.named_parameters()}
        return lambda x: functional_call(a, parameters, (x,))

    return [frozen(a) for a in adversary]


def _added(values: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, values)
