"""BinaryMI: what the whole code tells."""

from dataclasses import dataclass

from torch import nn

from fairbits.errors import InputError
from fairbits.estimators.code import CodeClassifier
from fairbits.estimators.concerns import conditional_entropy, saturated_penalty
from fairbits.estimators.settings import setting
from fairbits.information import joint_bias, joint_information, wide_information
from fairbits.information.words import EXACT_BITS
from fairbits.nn import RunningInformation

RUNNING_BITS, RUNNING_BATCH = 12, 256  # running tables up to this width and batch
WIDE_ROWS = 4096  # the estimate for wide codes costs the square of the rows: validation looks at this many


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryMIClassifier(CodeClassifier):
    """Penalise the joint information I(T;S) of the whole code.

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

    def build(self, inputs, n_classes):
        net = super().build(inputs, n_classes)
        if self._runs():
            labels = n_classes if self.condition_on_label else 1
            net.running = nn.ModuleList(
                RunningInformation(len(names), self.code_size) for names in self.groups_ for _ in range(labels)
            )
        return net

    def _runs(self) -> bool:
        if self.running_tables is True and self.code_size > EXACT_BITS:
            raise InputError(
                f"running_tables=True holds a table of 2^code_size words; with code_size={self.code_size} use "
                f"running_tables='auto', or at most {EXACT_BITS} bits."
            )
        if self.running_tables == "auto":
            return self.batch_size <= RUNNING_BATCH and self.code_size <= RUNNING_BITS
        return bool(self.running_tables)

    @property
    def max_validation_rows(self):
        return WIDE_ROWS if self.code_size > EXACT_BITS else None

    def penalty(self, net, cell, theta, groups, *, noise):
        if self._runs():
            return net.running[cell](theta, groups)
        return super().penalty(net, cell, theta, groups, noise=noise)

    def concerns(self, X, y=None, sensitive_features=None):
        found = super().concerns(X, y, sensitive_features)
        if sensitive_features is None or self.group_encoder_ is None or not self.gamma:
            return found
        best = next(epoch for epoch in self.history_ if epoch["epoch"] == self.best_epoch_)
        groups = self.group_encoder_.transform(sensitive_features)
        return found + saturated_penalty(
            best["information"], conditional_entropy(groups, y if self.condition_on_label else None)
        )

    def leakage(self, theta, groups, *, noise):
        if self.code_size <= EXACT_BITS:
            return joint_information(theta, groups)
        return wide_information(theta, groups, noise=noise)

    def leakage_bias(self, theta, groups):
        return joint_bias(theta, groups) if self.code_size <= EXACT_BITS else super().leakage_bias(theta, groups)
