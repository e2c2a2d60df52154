"""The paper's methods: a stochastic binary code, and a penalty on what it reveals about the groups."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fairbits.certificate import Certificate, Release, certify
from fairbits.certificate.releasing import system_uniforms
from fairbits.errors import InputError, InputWarning
from fairbits.estimators.base import InvariantClassifier, add_cells, log_softmax, softmax, weigh_cells
from fairbits.information import (
    WeighedGroups,
    binary_entropy,
    joint_bias,
    joint_information,
    neuronwise_bias,
    neuronwise_information,
    neuronwise_penalty,
    share_entropy,
    wide_information,
)
from fairbits.information.sampling import code_information
from fairbits.information.words import EXACT_BITS
from fairbits.nn import CodeNet, Inputs, RunningInformation, draw_bits
from fairbits.settings import setting, tunable
from fairbits.training import Batch

VALIDATION_DRAWS = 16  # of a code too wide for the exact expectation


class CollapsedCodeWarning(InputWarning):
    """All bits are the same for every row: the code reveals nothing, not even the label."""


class SaturatedPenaltyWarning(InputWarning):
    """The information measured on batches was almost H(S), its largest value: the penalty had nothing to compare."""


class CodeClassifier(TransformerMixin, InvariantClassifier):
    """Base of the methods with a stochastic code T: a network gives theta(x), and T_i is 1 with probability theta_i(x).

    Training minimises, in bits, with the cross-entropy of a head that sees only the drawn code:

        (1 - gamma) CE(Y, head(T)) + gamma leakage(T; S)

    Parameters
    ----------
    gamma : weight of the leakage, 0 to 1
    code_size : bits per row
    temperature : divides the code's logits
    noise_floor : eps; every bit keeps at least this chance of either value
    binary : also binarise the weights and the hidden activations ("fully binary"; the default is the "hybrid" net)
    prediction : "expected" averages the head over the code's randomness and is deterministic; "sampled" uses one draw
    condition_on_label : penalise I(T;S|Y) instead of I(T;S), for equalised odds

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    gamma: float = tunable(0.1, 0.0, 1.0, at_least=0, at_most=1)
    code_size: int = setting(8, at_least=1, whole=True)
    temperature: float = setting(1.0, above=0)
    noise_floor: float = setting(0.0, at_least=0, below=0.5)
    binary: bool = setting(False, one_of=(False, True))
    prediction: str = setting("expected", one_of=("expected", "sampled"))
    condition_on_label: bool = setting(False, one_of=(False, True))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")
    protects: ClassVar[bool] = True

    # ------------------------------------------------------------------ what a method defines

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

    # ------------------------------------------------------------------ network and loss

    def build(self, inputs: Inputs, n_classes: int) -> CodeNet:
        options = {name: getattr(self, name) for name in ("channels", "temperature", "noise_floor", "binary")}
        return CodeNet(inputs, self.hidden_sizes, self.code_size, n_classes, **options)

    def prepare(self, y: Tensor, s: Tensor, weight: Tensor) -> tuple[tuple, ...]:
        """Weigh the groups of every sensitive column, within each label where the leakage is measured there."""
        return weigh_cells(y, s, weight, self.group_sizes, len(self.classes_) if self.condition_on_label else 0)

    def loss(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        out = net(batch.x, batch.noise)
        return self.objective(net, batch, scalars, out.theta, out.logits, batch.prepared, batch.noise)

    def objective(self, net, batch: Batch, scalars, theta, logits, cells, noise) -> dict[str, Tensor]:
        """Return (1 - gamma) CE(Y, head(T)) + gamma I(T;S) and its parts, with theta of the rows behind `cells`."""
        cross_entropy = self.cross_entropy(log_softmax(logits), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        values = [self.penalty(net, i, theta, groups, noise) for i, (groups, _) in enumerate(cells)]
        penalty, information = (add_cells(parts, cells) for parts in zip(*values, strict=True))
        total = torch.lerp(cross_entropy, penalty, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": cross_entropy, "information": information}

    def evaluate(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss in expectation over the code, less what few rows add to the information, to first order.

        Otherwise sampling noise, and more of a preference for soft codes, would choose the epoch.
        """
        theta = net.theta(batch.x)
        cross_entropy = self.cross_entropy(self.expected_log_probabilities(net, theta, batch), batch)
        terms = {"total": cross_entropy, "cross_entropy": cross_entropy}
        if self.groups_:
            cells = self.validation_cells(net, batch)
            values = [self.leakage(theta, g, noise=batch.noise) - self.leakage_bias(theta, g) for g, _ in cells]
            terms["information"] = add_cells(values, cells)
            terms["total"] = torch.lerp(cross_entropy, terms["information"], scalars["gamma"])
        if self.training.selection == "paper":  # by the class probabilities as they will be predicted
            drawn, expected = net.head(draw_bits(theta, batch.noise)), net.expected(theta, softmax, VALIDATION_DRAWS)
            terms["probabilities"] = softmax(drawn) if self.prediction == "sampled" else expected
        return terms

    def expected_log_probabilities(self, net: CodeNet, theta: Tensor, batch: Batch) -> Tensor:
        """Return the mean over codes of the head's log-probabilities.  (n, classes)"""
        return net.expected(theta, log_softmax, VALIDATION_DRAWS)

    def validation_cells(self, net: CodeNet, batch: Batch) -> tuple[tuple, ...]:
        """Return the weighed groups that the leakage of validation rows is measured between."""
        return batch.prepared

    # ------------------------------------------------------------------ using a fitted code

    def probabilities(self, net, x: Tensor) -> Tensor:
        return net.expected(net.theta(x), softmax)

    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class: averaged over the code's randomness, or of one draw ("sampled").

        The averaged one is a function of the row itself: a certificate of one draw does not cover it.
        """
        return super().predict_proba(X) if self.prediction == "expected" else self.sampled_proba(X)

    def sampled_proba(self, X) -> np.ndarray:
        """Return the class probabilities that the head gives to one fresh draw of each row."""
        return self.decode(self.draw(X))

    def transform(self, X) -> np.ndarray:
        """Draw one code per row: fresh random bits at every call.  (n, code_size) uint8

        This is what you may share, once per person: two draws of a person reveal more than one, and
        `code_probabilities` reveal everything. `fairbits.release` keeps count of who has received a code.
        """
        return self.draw(X)

    def draw(self, X, *, draws: int = 1, eps: float = 0.0, coarse: Any = None) -> np.ndarray:
        """Draw another kind of release: several codes side by side, noisier bits, or the cell of a coarse code.

        The parameters are those of `fairbits.certificate.Release`; `certify` takes the same.
        """
        return Release(draws, eps, coarse).draw(self.code_probabilities(X), self._uniforms)

    def decode(self, codes) -> np.ndarray:
        """Return the class probabilities that the head gives to drawn codes.  (n, classes)

        What a recipient of the codes can do with the model's head; `predict_proba` averages it over the randomness.
        """
        check_is_fitted(self)
        codes = check_array(codes, dtype=np.float32)
        if codes.shape[1] != self.code_size or not np.isin(codes, (0, 1)).all():
            wanted = f"codes must be bits of shape (n, {self.code_size}), as `transform` draws them"
            found = f"shape {codes.shape} with values from {codes.min():g} to {codes.max():g}"
            raise InputError(f"{wanted}; got {found}.")
        with torch.no_grad():
            return softmax(self.net_.head(torch.from_numpy(codes).to(self.device))).cpu().double().numpy()

    def code_probabilities(self, X) -> np.ndarray:
        """Return theta, the probability that each bit is 1: for audits, not for release.  (n, code_size)"""
        return self._by_rows(X, lambda net, x: net.theta(x))

    def information(self, X, *, sensitive_features, y=None) -> float:
        """Return I(T;S) of one draw per row of X, in bits; with labels y, I(T;S|Y); of several columns the worst.

        The empirical information of these rows, which errs above the population's where rows are few. Exact up to
        20 bits (2^32 rows times words), else a Monte-Carlo estimate of 2,000 draws.
        """
        check_is_fitted(self)
        if self.group_encoder_ is None:
            raise InputError("This estimator was fitted without sensitive_features.", remedy="Fit it with them first.")
        theta = self.code_probabilities(X)
        groups = self.group_encoder_.transform(sensitive_features, n_rows=len(theta))
        for column, names in zip(groups.T, self.groups_, strict=True):
            if len(np.unique(column)) < 2:
                problem = f"sensitive_features holds only {names[column[0]]!r}."
                raise InputError(problem, remedy="Pass rows of at least two groups.")
        return code_information(theta, groups, y)

    def certify(self, X, *, sensitive_features, y=None, **options) -> Certificate:
        """Prove from held-out rows what any recipient can do with the code; options as in `fairbits.certify`."""
        return certify(self, X, sensitive_features=sensitive_features, y=y, **options)

    def concerns(self, X, y=None, sensitive_features=None) -> list[Warning]:
        theta = torch.from_numpy(self.code_probabilities(X))
        about_rows = binary_entropy(theta.mean(0)) - binary_entropy(theta).mean(0)  # I(T_i;X) of each bit
        if float(about_rows.max()) >= 1e-3:  # bits
            return super().concerns(X, y, sensitive_features)
        alike = f"all {theta.shape[1]} bits are the same for every row, so it predicts nothing"
        remedy = "Lower gamma, or train longer (max_epochs, warmup_epochs)."
        return [CollapsedCodeWarning(f"The code has collapsed: {alike}.", remedy=remedy)]

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Name the bits: bit0, bit1, ..."""
        check_is_fitted(self)
        return np.array([f"bit{i}" for i in range(self.code_size)], dtype=object)

    def _uniforms(self, n: int, m: int) -> np.ndarray:
        """Return fresh uniforms in [0, 1): from the operating system, or from the seed when there is one."""
        if self.random_state is None:
            return system_uniforms(n, m)
        return check_random_state(self.random_state).random_sample((n, m))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class BinaryBernoulliClassifier(CodeClassifier):
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

    def leakage(self, theta, groups, *, noise):
        return neuronwise_information(theta, groups).sum(-1)

    def leakage_bias(self, theta, groups):
        return neuronwise_bias(theta, groups).sum(-1)

    def penalty(self, net, cell, theta, groups, noise):
        value = neuronwise_penalty(theta, groups)  # the same sum, with a gradient that does not vanish at theta 0 or 1
        return value, value


class BinaryMIClassifier(CodeClassifier):
    """Penalise the joint information I(T;S) of the whole code.

    With pi_s the share of group s, and P_s(t) the mean over its rows of the probability of the word t, minimise

        (1 - gamma) CE(Y, head(T)) + gamma I(T;S)
        I(T;S) = sum_s pi_s sum_t P_s(t) log2(P_s(t) / P(t)),  P = sum_s pi_s P_s
        P_s(t) = mean over rows x of s of prod_i theta_i(x)^t_i (1 - theta_i(x))^(1 - t_i)

    Exactly, over all 2^m words, up to 16 bits (the expectation of the paper's histogram over infinitely many draws);
    above, by an unbiased one-draw estimate with its local-expectation gradient. The published version counts drawn
    codes, which has no gradient and saturates at H(S) once the words outnumber the rows.

    Parameters
    ----------
    running_tables : average the groups' code distributions over batches; "auto" does so for batches of at most 256
        rows and at most 12 bits, where one batch's information errs upwards most

    The other parameters are those of `CodeClassifier`.
    """

    running_tables: bool | str = setting("auto", one_of=("auto", True, False))

    def leakage(self, theta, groups, *, noise):
        if self.code_size <= EXACT_BITS:
            return joint_information(theta, groups)
        return wide_information(theta, groups, noise=noise)

    def leakage_bias(self, theta, groups):
        return joint_bias(theta, groups) if self.code_size <= EXACT_BITS else super().leakage_bias(theta, groups)

    def penalty(self, net, cell, theta, groups, noise):
        if self._runs():
            return net.running[cell](theta, groups)
        return super().penalty(net, cell, theta, groups, noise)

    def build(self, inputs, n_classes):
        net = super().build(inputs, n_classes)
        if self._runs():
            sizes = [size for size in self.group_sizes for _ in range(n_classes if self.condition_on_label else 1)]
            net.running = nn.ModuleList(RunningInformation(size, self.code_size) for size in sizes)
        return net

    def _runs(self) -> bool:
        if self.running_tables is True and self.code_size > EXACT_BITS:
            remedy = f"With code_size={self.code_size} use running_tables='auto', or at most {EXACT_BITS} bits."
            raise InputError("running_tables=True holds a table of 2^code_size words.", remedy=remedy)
        if self.running_tables == "auto":
            return self.batch_size <= 256 and self.code_size <= 12
        return bool(self.running_tables)

    @property
    def max_validation_rows(self) -> int | None:
        return 4096 if self.code_size > EXACT_BITS else None  # the estimate for wide codes costs the rows' square

    def concerns(self, X, y=None, sensitive_features=None):
        found = super().concerns(X, y, sensitive_features)
        if sensitive_features is None or self.group_encoder_ is None or not self.gamma:
            return found
        (shown,) = (epoch["information"] for epoch in self.history_ if epoch["epoch"] == self.best_epoch_)
        groups = self.group_encoder_.transform(sensitive_features)
        entropy = conditional_entropy(groups, y if self.condition_on_label else None)
        if shown <= 0.9 * entropy:
            return found
        seen = f"On training batches the code revealed {shown:.3f} of the groups' {entropy:.3f} bits"
        blind = "there are more code words than rows in a batch and the penalty is blind"
        problem = f"{seen}: either each group has its own code words, or {blind}."
        return [*found, SaturatedPenaltyWarning(problem, remedy="Raise batch_size or noise_floor, or lower code_size.")]


def conditional_entropy(groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return H(S), or with labels y H(S|Y), in bits, of numbered groups (n, columns), added over the columns."""
    labels = np.zeros(len(groups)) if y is None else np.asarray(y)
    strata = [groups[labels == label] for label in np.unique(labels)]
    shares = [(np.unique(column, return_counts=True)[1] / len(rows), len(rows)) for rows in strata for column in rows.T]
    return sum(share_entropy(share) * (n / len(groups)) for share, n in shares)
