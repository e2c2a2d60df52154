"""Codes for data in which the sensitive feature almost determines the label, such as Biased-MNIST."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.estimators.base import log_softmax, weigh_cells
from fairbits.estimators.binary import BinaryBernoulliClassifier, BinaryMIClassifier, PenalisedCodeClassifier
from fairbits.nn.code_networks import VALIDATION_DRAWS, CodeNet, Inputs
from fairbits.settings import setting
from fairbits.training import Batch, joint_groups

REBALANCE = ("none", "prior", "independent", "balanced", "prior+independent", "prior+balanced")


class DebiasedCode(PenalisedCodeClassifier):
    """Measure the leakage where S and the label are independent, and spare the head what S alone reveals.

    Parameters
    ----------
    rebalance : one or two words with a plus between. "prior": in training, add log p(y|s) to the head's logits, so that
        what the groups alone reveal about the label need not be learnt from x. "independent": measure the leakage with
        weights that make S and the label independent; or "balanced": on a second batch drawn evenly from the (label,
        group) cells, which rare cells need when a batch holds but a few of their rows

    The other parameters are those of the method itself.
    """

    rebalance: str = setting("prior+balanced", one_of=REBALANCE)

    @property
    def corrects_prior(self) -> bool:
        """Whether the head's logits get log p(y|s) in training."""
        return "prior" in self.rebalance and bool(self.groups_)

    @property
    def reweighs(self) -> bool:
        """Whether the leakage is measured where S and the label are independent."""
        return self.rebalance.endswith(("independent", "balanced"))

    @property
    def balanced_rows(self) -> int:
        return self.batch_size if self.rebalance.endswith("balanced") and self.groups_ else 0

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        if getattr(self, "has_unlabelled_", False) and self.rebalance != "none":
            problem = f"rebalance={self.rebalance!r} needs every row's label."
            raise InputError(problem, remedy="Use it without `unlabelled`.")
        if self.condition_on_label and self.reweighs:
            problem = "makes S and the label independent, condition_on_label=True looks within labels."
            raise InputError(problem, argument="rebalance", value=self.rebalance, remedy="Choose one of them.")
        return super().build(inputs, n_classes)

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        sizes: Sequence[int] = self.group_sizes
        if self.corrects_prior:
            shares = log_label_shares(y, s, weight, sizes, len(self.classes_))
            net.register_buffer("log_prior", shares, persistent=False)
        for column, size in enumerate(sizes if self.reweighs else ()):
            ratio = independence_ratio(y, s[:, column], weight, len(self.classes_), size)
            net.register_buffer(f"independence{column}", ratio, persistent=False)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if batch.extra:  # one pass for both: batch normalisation sees them together
            out = net(*(torch.cat([getattr(b, name) for b in (batch, batch.extra)]) for name in ("x", "noise")))
            theta, logits, measured = out.theta[len(batch.y) :], out.logits[: len(batch.y)], batch.extra
        else:
            (theta, _, logits), measured = net(batch.x, batch.noise), batch
        if self.rebalance.endswith("independent"):
            measured = measured._replace(prepared=self._independent_cells(net, batch))
        return self.objective(net, batch, scalars, self._corrected(net, logits, batch.s), theta, measured)

    def expected_log_probabilities(self, net: CodeNet, theta: Tensor, batch: Batch) -> Tensor:
        if not self.corrects_prior:
            return super().expected_log_probabilities(net, theta, batch)
        logits = net.head(net.fixed_codes(theta, VALIDATION_DRAWS))
        return log_softmax(self._corrected(net, logits, batch.s)).mean(0)

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.reweighs:
            batch = batch._replace(prepared=self._independent_cells(net, batch))
        return super().evaluate(net, batch, scalars)

    def _independent_cells(self, net: CodeNet, batch: Batch) -> tuple[tuple, ...]:
        """Weigh the groups like `prepare`, by weights that make S and the label independent."""
        cells: list[tuple] = []
        for column, size in enumerate(self.group_sizes):
            s = batch.s[..., column : column + 1]
            weight = batch.weight * net.get_buffer(f"independence{column}")[batch.y, s[..., 0]]
            cells += weigh_cells(batch.y, s, weight, [size])
        return tuple(cells)

    def _corrected(self, net: CodeNet, logits: Tensor, s: Tensor) -> Tensor:
        """Add what the groups alone reveal about the label."""
        if not self.corrects_prior:
            return logits
        return logits + net.get_buffer("log_prior")[joint_groups(s, self.group_sizes)]


class DebiasedBernoulliClassifier(DebiasedCode, BinaryBernoulliClassifier):
    """`BinaryBernoulliClassifier` for data in which the sensitive feature almost determines the label."""


class DebiasedMIClassifier(DebiasedCode, BinaryMIClassifier):
    """`BinaryMIClassifier` for data in which the sensitive feature almost determines the label."""


def log_label_shares(y: Tensor, s: Tensor, weight: Tensor, sizes: Sequence[int], n_classes: int) -> Tensor:
    """Return log p(y|s), one row's worth of the uniform distribution added to each combination.  (cells, classes)"""
    counts = torch.full((math.prod(sizes), n_classes), 1 / n_classes)
    counts.index_put_((joint_groups(s, sizes), y), weight, accumulate=True)
    return (counts / counts.sum(1, keepdim=True)).log()


def independence_ratio(y: Tensor, s: Tensor, weight: Tensor, n_classes: int, n_groups: int) -> Tensor:
    """Return p(y) p(s) / p(y, s) of rows with these labels, groups and weights, 0 where none is.  (classes, groups)"""
    mass = torch.zeros(n_classes, n_groups).index_put_((y, s), weight, accumulate=True)
    joint = mass / mass.sum()
    return torch.where(joint > 0, joint.sum(1, keepdim=True) * joint.sum(0) / joint, 0)
