"""The paper's methods: a stochastic binary code, and a penalty on what it reveals about the groups."""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from fairbits import information as measure
from fairbits.errors import InputError, InputWarning
from fairbits.estimators.base import add_cells, log_softmax, softmax
from fairbits.estimators.codes import CodeClassifier
from fairbits.information import WeighedGroups
from fairbits.information.exact import BLOCK_BITS
from fairbits.information.words import EXACT_BITS
from fairbits.nn import CodeNet, Inputs, RunningInformation, draw_bits
from fairbits.nn.code_networks import VALIDATION_DRAWS
from fairbits.settings import setting, tunable
from fairbits.training import Batch


class SaturatedPenaltyWarning(InputWarning):
    """The information measured on batches was almost H(S), its largest value, so the penalty had no effect."""


class PenalisedCodeClassifier(CodeClassifier):
    """Base of the methods with a random code and a weight gamma on what it reveals.

    Training minimises, in bits, with the cross-entropy of a head that sees only the drawn code:

        (1 - gamma) CE(Y, head(T)) + gamma leakage(T; S)

    Parameters
    ----------
    gamma : weight of the leakage, 0 to 1
    temperature : divides the code's logits
    noise_floor : eps; every bit keeps at least this chance of either value
    binary : also binarise the weights and the hidden activations ("fully binary"; the default is the "hybrid" net)
    prediction : "expected" averages the head over the code's randomness and is deterministic; "sampled" uses one draw

    The other parameters are those of `CodeClassifier`; `condition_on_label` penalises I(T;S|Y) instead of I(T;S).
    """

    gamma: float = tunable(0.1, 0.0, 1.0, at_least=0, at_most=1)
    temperature: float = setting(1.0, above=0)
    noise_floor: float = setting(0.0, at_least=0, below=0.5)
    binary: bool = setting(False, one_of=(False, True))
    prediction: str = setting("expected", one_of=("expected", "sampled"))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")

    def leakage(self, theta: Tensor, groups: WeighedGroups, *, noise: Tensor) -> Tensor:
        """Return what the code of these rows reveals about the groups, in bits; `noise` is for a measure that draws."""
        raise NotImplementedError(f"{type(self).__name__} does not define its leakage.")

    def leakage_bias(self, theta: Tensor, groups: WeighedGroups) -> Tensor:
        """Return by how much `leakage` errs upwards because these rows are few; validation subtracts it."""
        return torch.zeros((), device=theta.device)

    def penalty(self, net: CodeNet, cell: int, theta: Tensor, groups: WeighedGroups, noise: Tensor) -> tuple:
        """Return (term with the training gradient, value to log); a method may need another form on batches.

        `cell` counts the sensitive columns, and the labels within them where leakage is measured within labels.
        """
        value = self.leakage(theta, groups, noise=noise)
        return value, value

    def build(self, inputs: Inputs, n_classes: int) -> CodeNet:
        options = {name: getattr(self, name) for name in ("channels", "temperature", "noise_floor", "binary")}
        return CodeNet(inputs, self.hidden_sizes, self.code_size, n_classes, **options)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        theta, _, logits = net(batch.x, batch.noise)
        return self.objective(net, batch, scalars, logits, theta, batch)

    def objective(
        self, net: Any, batch: Batch, scalars: dict[str, Tensor], logits: Tensor, theta: Tensor, measured: Batch
    ) -> dict[str, Tensor]:
        """Return (1 - gamma) CE(Y, head(T)) + gamma I(T;S) and its parts, with theta of the batch to be measured."""
        cross_entropy = self.cross_entropy(log_softmax(logits), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        cells = enumerate(measured.prepared)
        values = [self.penalty(net, i, theta, groups, measured.noise) for i, (groups, _) in cells]
        penalties, informations = zip(*values, strict=True)
        penalty = add_cells(penalties, measured.prepared)
        same = all(one is other for one, other in values)  # where there is no other form for batches
        information = penalty if same else add_cells(informations, measured.prepared)
        total = torch.lerp(cross_entropy, penalty, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": cross_entropy, "information": information}

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss in expectation over the code, less what few rows add to the information, to first order.

        Otherwise sampling noise, and more of a preference for soft codes, would choose the epoch.
        """
        theta = net.theta(batch.x)
        cross_entropy = self.cross_entropy(self.expected_log_probabilities(net, theta, batch), batch)
        terms = {"total": cross_entropy, "cross_entropy": cross_entropy}
        if self.groups_:
            groups = [groups for groups, _ in batch.prepared]
            values = [self.leakage(theta, g, noise=batch.noise) - self.leakage_bias(theta, g) for g in groups]
            terms["information"] = add_cells(values, batch.prepared)
            terms["total"] = torch.lerp(cross_entropy, terms["information"], scalars["gamma"])
        if self.training.selection == "paper":  # by the class probabilities as they will be predicted
            drawn, expected = net.head(draw_bits(theta, batch.noise)), net.expected(theta, softmax, VALIDATION_DRAWS)
            terms["probabilities"] = softmax(drawn) if self.prediction == "sampled" else expected
        return terms

    def expected_log_probabilities(self, net: CodeNet, theta: Tensor, batch: Batch) -> Tensor:
        """Return the mean over codes of the head's log-probabilities.  (n, classes)"""
        return net.expected(theta, log_softmax, VALIDATION_DRAWS)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class: averaged over the code's randomness, or of one draw ("sampled").

        The averaged one is a function of the row itself: a certificate of one draw does not cover it.
        """
        return super().predict_proba(X) if self.prediction == "expected" else self.sampled_proba(X)


class BinaryBernoulliClassifier(PenalisedCodeClassifier):
    """Penalise the information each stochastic neuron holds about S, summed over neurons (the paper's method).

    With pi_s the share of group s, theta_si the mean of theta_i(x) over its rows and h the binary entropy, minimise

        (1 - gamma) CE(Y, head(T)) + gamma sum_i I(T_i;S)
        I(T_i;S) = h(sum_s pi_s theta_si) - sum_s pi_s h(theta_si)

    The sum is a surrogate: the whole code may reveal far more than its bits one by one (two bits whose parity is S have
    sum 0 and joint information 1), and repeated bits are counted repeatedly. `BinaryMIClassifier` penalises the joint
    information itself.

    Differences from the published version: information and cross-entropy both in bits; the gradient passes through
    theta; batches are stratified; the penalty is warmed up; the prediction is the expected one unless asked otherwise.
    """

    def leakage(self, theta: Tensor, groups: WeighedGroups, *, noise: Tensor) -> Tensor:
        return measure.neuronwise_information(theta, groups).sum(-1)

    def leakage_bias(self, theta: Tensor, groups: WeighedGroups) -> Tensor:
        return measure.neuronwise_bias(theta, groups).sum(-1)

    def penalty(self, net: Any, cell: int, theta: Tensor, groups: WeighedGroups, noise: Tensor) -> tuple:
        value = measure.neuronwise_penalty(theta, groups)  # the same sum; its gradient does not vanish at theta 0 or 1
        return value, value


class BinaryMIClassifier(PenalisedCodeClassifier):
    """Penalise the joint information I(T;S) of the whole code.

    With pi_s the share of group s, and P_s(t) the mean over its rows of the probability of the word t, minimise

        (1 - gamma) CE(Y, head(T)) + gamma I(T;S)
        I(T;S) = sum_s pi_s sum_t P_s(t) log2(P_s(t) / P(t)),  P = sum_s pi_s P_s
        P_s(t) = mean over rows x of s of prod_i theta_i(x)^t_i (1 - theta_i(x))^(1 - t_i)

    Exactly, over all 2^m words, up to 16 bits (the expectation of the paper's histogram over infinitely many draws).
    The published version counts drawn codes, which has no gradient and saturates at H(S) once the words outnumber the
    rows. Above 16 bits, that of any batch comes close to H(S), too, whatever the code reveals: what is penalised then
    is the sum of I(T_b;S) over blocks b of 8 bits, see `fairbits.information.block_information`.

    Parameters
    ----------
    running_tables : average the groups' code distributions over batches; "auto" does so for batches of at most 256
        rows and tables of at most 12 bits, where one batch's information errs upwards most
    wide : above 16 bits, penalise "blocks", or the whole code by "draws": one for every row, without bias for the
        information of the batch, which is far above the population's

    The other parameters are those of `PenalisedCodeClassifier`.
    """

    running_tables: bool | str = setting("auto", one_of=("auto", True, False))
    wide: str = setting("blocks", one_of=("blocks", "draws"))

    def leakage(self, theta: Tensor, groups: WeighedGroups, *, noise: Tensor) -> Tensor:
        if self._draws():
            return measure.wide_information(theta, groups, noise=noise)
        return (measure.block_information if self._blocks() else measure.joint_information)(theta, groups)

    def leakage_bias(self, theta: Tensor, groups: WeighedGroups) -> Tensor:
        if self._draws():
            return super().leakage_bias(theta, groups)
        return (measure.block_bias if self._blocks() else measure.joint_bias)(theta, groups)

    def penalty(self, net: Any, cell: int, theta: Tensor, groups: WeighedGroups, noise: Tensor) -> tuple:
        if not self._runs():
            return super().penalty(net, cell, theta, groups, noise)
        if not self._blocks():
            return net.running[cell](theta, groups)
        return tuple(value.sum(-1) for value in net.running[cell](*measure.code_blocks(theta, groups)))

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if self._runs():
            sizes = [size for size in self.group_sizes for _ in range(n_classes if self.condition_on_label else 1)]
            bits = BLOCK_BITS if self._blocks() else self.code_size
            net.running = nn.ModuleList(RunningInformation(size, bits, blocks=self._blocks()) for size in sizes)
        return net

    def _draws(self) -> bool:
        return self.wide == "draws" and self.code_size > EXACT_BITS

    def _blocks(self) -> int | None:
        """Return into how many blocks the code is cut, None for a code that is measured as a whole."""
        return -(-self.code_size // BLOCK_BITS) if self.code_size > EXACT_BITS and self.wide == "blocks" else None

    def _runs(self) -> bool:
        if self.running_tables is True and self._draws():
            remedy = f"With code_size={self.code_size} use running_tables='auto', wide='blocks' or {EXACT_BITS} bits."
            raise InputError("running_tables=True holds a table of 2^code_size words.", remedy=remedy)
        if self.running_tables == "auto":
            return self.batch_size <= 256 and (self.code_size <= 12 or self._blocks() is not None)
        return bool(self.running_tables)

    @property
    def max_validation_rows(self) -> int | None:
        return 4096 if self._draws() else None  # that estimate costs the rows' square

    def concerns(self, X: Any, y: Any = None, sensitive_features: Any = None) -> list[Warning]:
        found = super().concerns(X, y, sensitive_features)
        if sensitive_features is None or self.group_encoder_ is None or not self.gamma:
            return found
        (shown,) = (epoch["information"] for epoch in self.history_ if epoch["epoch"] == self.best_epoch_)
        groups = self.group_encoder_.transform(sensitive_features)
        entropy = conditional_entropy(groups, y if self.condition_on_label else None)
        if shown <= 0.9 * entropy * (self._blocks() or 1):
            return found
        seen = f"On training batches the code revealed {shown:.3f} of the groups' {entropy:.3f} bits"
        blind = "there are more code words than rows in a batch, and the penalty has no effect"
        problem = f"{seen}: either each group has its own code words, or {blind}."
        return [*found, SaturatedPenaltyWarning(problem, remedy="Raise batch_size or noise_floor, or lower code_size.")]


def conditional_entropy(groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return H(S), or with labels y H(S|Y), in bits, of numbered groups (n, columns), added over the columns."""
    labels = np.zeros(len(groups)) if y is None else np.asarray(y)
    tables = [pd.crosstab(labels, column, normalize=True).to_numpy() for column in groups.T]
    return sum(measure.share_entropy(table) - measure.share_entropy(table.sum(1)) for table in tables)
