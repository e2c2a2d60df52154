"""What the methods with a stochastic code share: the penalised loss, drawing, measuring."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fairbits.certificate import Certificate, Release, certify, system_uniforms
from fairbits.errors import InputError
from fairbits.estimators.base import InvariantClassifier, log_softmax
from fairbits.estimators.cells import add_cells, independence_ratio, joint_groups, log_label_shares, weigh_cells
from fairbits.estimators.concerns import collapsed_code
from fairbits.estimators.settings import setting, tunable
from fairbits.information import WeighedGroups
from fairbits.information.code_information import code_information
from fairbits.nn import CodeNet, Inputs, draw_bits
from fairbits.training import Batch

VALIDATION_DRAWS = 16  # of a code too wide for the exact expectation


@dataclass(kw_only=True, eq=False, repr=False)
class CodeClassifier(TransformerMixin, InvariantClassifier):
    """Base of the methods with a stochastic code: minimise gamma * leakage + (1 - gamma) * cross-entropy, in bits.

    Parameters
    ----------
    gamma : weight of the leakage, 0 to 1
    code_size : bits per row
    temperature : divides the code's logits
    noise_floor : eps; no bit is surer than 1 - eps
    binary : also binarise the weights and the hidden activations ("fully binary"; the default is the "hybrid" net)
    prediction : "expected" averages the head over the code's randomness and is deterministic; "sampled" uses one draw
    condition_on_label : penalise I(T;S|Y) instead of I(T;S), for equalised odds
    prior_correction : in training, add log p(y|s) to the head's logits: what the groups alone say about the label need
        not be learnt from x. For data in which S almost determines the label
    leakage_rows : where the penalty is measured: on "all" rows as they are; with weights that make S and the label
        "independent"; or on a second, "balanced" batch drawn evenly from the (label, group) cells, which rare cells
        need when a batch holds but a few of their rows

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    gamma: float = tunable(0.1, 0.0, 1.0, at_least=0, at_most=1)
    code_size: int = setting(8, at_least=1, whole=True)
    temperature: float = setting(1.0, above=0)
    noise_floor: float = setting(0.0, at_least=0, below=0.5)
    binary: bool = setting(False, one_of=(False, True))
    prediction: str = setting("expected", one_of=("expected", "sampled"))
    condition_on_label: bool = setting(False, one_of=(False, True))
    prior_correction: bool = setting(False, one_of=(False, True))
    leakage_rows: str = setting("all", one_of=("all", "independent", "balanced"))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")
    protects: ClassVar[bool] = True

    # ------------------------------------------------------------------ what a method says

    def leakage(self, theta: Tensor, groups: WeighedGroups, *, noise: Tensor) -> Tensor:
        """Return what the code of these rows tells about the groups, in bits; `noise` is for a measure that draws."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to measure leakage.")

    def leakage_bias(self, theta: Tensor, groups: WeighedGroups) -> Tensor:
        """Return by how much `leakage` errs upwards because these rows are few; validation subtracts it."""
        return torch.zeros((), device=theta.device)

    def penalty(
        self, net: CodeNet, cell: int, theta: Tensor, groups: WeighedGroups, *, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return (term with the training gradient, value to log); a method may need another form on batches.

        `cell` counts the sensitive columns, and the labels within them where leakage is measured within labels.
        """
        value = self.leakage(theta, groups, noise=noise)
        return value, value

    # ------------------------------------------------------------------ network and loss

    @property
    def stratify_by_label(self) -> bool:
        return self.condition_on_label

    def build(self, inputs: Inputs, n_classes: int) -> CodeNet:
        if self.unlabelled is not None and (self.prior_correction or self.leakage_rows != "all"):
            raise InputError("prior_correction and leakage_rows need every row's label; use them without `unlabelled`.")
        if self.condition_on_label and self.leakage_rows != "all":
            raise InputError(
                f"leakage_rows={self.leakage_rows!r} makes S and the label independent, condition_on_label=True looks "
                "within labels: choose one of them."
            )
        return CodeNet(
            inputs,
            self.hidden_sizes,
            self.code_size,
            n_classes,
            channels=self.channels,
            temperature=self.temperature,
            noise_floor=self.noise_floor,
            binary=self.binary,
        )

    @property
    def balanced_rows(self) -> int:
        return self.batch_size if self.leakage_rows == "balanced" and self.groups_ else 0

    def initialise(self, net, y: Tensor, s: Tensor, weight: Tensor) -> None:
        sizes, n_classes = self.group_sizes, len(self.classes_)
        if sizes and self.prior_correction:
            net.register_buffer("log_prior", log_label_shares(y, s, weight, sizes, n_classes), persistent=False)
        for column, size in enumerate(sizes if self.leakage_rows != "all" else ()):
            ratio = independence_ratio(y, s[:, column], weight, n_classes, size)
            net.register_buffer(f"independence{column}", ratio, persistent=False)

    def _corrected(self, net: CodeNet, logits: Tensor, s: Tensor) -> Tensor:
        """Add what the groups alone say about the label, if asked for."""
        if not (self.prior_correction and self.groups_):
            return logits
        return logits + net.get_buffer("log_prior")[joint_groups(s, self.group_sizes)]

    def _independent(self, net: CodeNet, batch: Batch) -> tuple[tuple, ...]:
        """Weigh the groups like `prepare`, by weights that make S and the label independent."""
        cells: list[tuple] = []
        for column, size in enumerate(self.group_sizes):
            s = batch.s[..., column : column + 1]
            weight = batch.weight * net.get_buffer(f"independence{column}")[batch.y, s[..., 0]]
            cells += weigh_cells(batch.y, s, weight, [size])
        return tuple(cells)

    def loss(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        theta, logits, measured = self._outputs(net, batch)
        cross_entropy = self.cross_entropy(log_softmax(self._corrected(net, logits, batch.s)), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        prepared = self._independent(net, batch) if self.leakage_rows == "independent" else measured.prepared
        cells = [
            self.penalty(net, cell, theta, groups, noise=measured.noise) for cell, (groups, *_) in enumerate(prepared)
        ]
        penalty, information = (add_cells(values, prepared) for values in zip(*cells, strict=True))
        total = torch.lerp(cross_entropy, penalty, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": cross_entropy, "information": information}

    def _outputs(self, net: CodeNet, batch: Batch) -> tuple[Tensor, Tensor, Batch]:
        """Return theta of the rows the penalty is measured on, the batch's logits, and the batch of those rows."""
        if not batch.extra:
            out = net(batch.x, batch.noise)
            return out.theta, out.logits, batch
        # One pass for both: batch normalisation sees them together.
        out = net(*(torch.cat([getattr(b, name) for b in (batch, batch.extra)]) for name in ("x", "noise")))
        return out.theta[len(batch.y) :], out.logits[: len(batch.y)], batch.extra

    def evaluate(self, net, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loss in expectation over the code, less the first-order estimate of the information's error on few rows.

        Otherwise sampling noise, and more of a preference for soft codes, would choose the epoch.
        """
        theta = net.theta(batch.x)
        if self.prior_correction:
            logits = net.head(net.fixed_codes(theta, VALIDATION_DRAWS))
            log_p = log_softmax(self._corrected(net, logits, batch.s)).mean(0)
        else:
            log_p = net.expected(theta, log_softmax, VALIDATION_DRAWS)
        terms = {"total": self.cross_entropy(log_p, batch), "cross_entropy": self.cross_entropy(log_p, batch)}
        if self.groups_:
            prepared = batch.prepared if self.leakage_rows == "all" else self._independent(net, batch)
            values = [
                self.leakage(theta, groups, noise=batch.noise) - self.leakage_bias(theta, groups)
                for groups, *_ in prepared
            ]
            terms["information"] = add_cells(values, prepared)
            terms["total"] = torch.lerp(terms["cross_entropy"], terms["information"], scalars["gamma"])
        if self.selection == "paper":
            terms["probabilities"] = self._predicted(net, theta, batch.noise)
        return terms

    def _predicted(self, net: CodeNet, theta: Tensor, noise: Tensor) -> Tensor:
        """Return the class probabilities as they will be predicted: on average, or from one draw."""
        if self.prediction == "sampled":
            return torch.softmax(net.head(draw_bits(theta, noise)), -1)
        return net.expected(theta, lambda logits: torch.softmax(logits, -1), VALIDATION_DRAWS)

    def prepare(self, y: Tensor, s: Tensor, weight: Tensor) -> tuple[tuple, ...]:
        return weigh_cells(y, s, weight, self.group_sizes, len(self.classes_) if self.condition_on_label else None)

    # ------------------------------------------------------------------ using a fitted code

    def probabilities(self, net, x: Tensor) -> Tensor:
        return net.expected(net.theta(x), lambda logits: torch.softmax(logits, -1))

    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class: averaged over the code's randomness, or of one draw ("sampled").

        The averaged one is a function of the row itself: what is said about one draw does not cover it.
        """
        return super().predict_proba(X) if self.prediction == "expected" else self.sampled_proba(X)

    def sampled_proba(self, X) -> np.ndarray:
        """Return the class probabilities that the head gives to one fresh draw of each row.

        For scoring, not for release: they reveal the code, and the draw is not entered in any ledger.
        """
        return self.decode(Release().draw(self.code_probabilities(X), self._uniforms))

    def transform(self, X, *, draws: int = 1, eps: float = 0.0, coarse=None) -> np.ndarray:
        """Draw one code per row: fresh random bits at every call.  (n, draws * code_size) uint8

        One draw per person is what a certificate covers. Two draws of the same person reveal more than one, and
        `code_probabilities` reveal everything. This keeps no record of whom it drew: to release codes use
        `fairbits.release`, which refuses a second draw.

        Parameters
        ----------
        X : the rows
        draws, eps, coarse : what is released of each person, see `fairbits.certificate.Release`: several codes side by
            side, every bit flipped with probability eps, or the cell of a coarse code (n, 1). `certify` takes the same
        """
        release = Release(draws, eps, coarse)
        named = _get_output_config("transform", self)["dense"] != "default"
        if named and (release.draws > 1 or release.coarse is not None):
            raise InputError(
                "set_output names the bits of one draw; use set_output(transform='default') for several draws or cells."
            )
        return release.draw(self.code_probabilities(X), self._uniforms)

    def decode(self, codes) -> np.ndarray:
        """Return the class probabilities that the head gives to drawn codes.  (n, classes)

        What a receiver of the codes can do with the model's head; `predict_proba` averages it over the randomness.
        """
        check_is_fitted(self)
        codes = check_array(codes, dtype=np.float32)
        if codes.shape[1] != self.code_size or not np.isin(codes, (0, 1)).all():
            raise InputError(
                f"codes must be bits of shape (n, {self.code_size}), as `transform` draws them; got "
                f"shape {codes.shape} with values from {codes.min():g} to {codes.max():g}."
            )
        with torch.no_grad():
            return torch.softmax(self.net_.head(torch.from_numpy(codes).to(self.device)), -1).cpu().double().numpy()

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
            raise InputError("This estimator was fitted without sensitive_features; fit it with them first.")
        theta = self.code_probabilities(X)
        groups = self.group_encoder_.transform(sensitive_features, n_rows=len(theta))
        for column, names in zip(groups.T, self.groups_, strict=True):
            if len(np.unique(column)) < 2:
                raise InputError(
                    f"sensitive_features holds only {names[column[0]]!r}; pass rows of at least two groups."
                )
        return code_information(theta, groups, y)

    def certify(self, X, *, sensitive_features, y=None, **options) -> Certificate:
        """Prove from held-out rows what any receiver of the code can do with it; options as in `fairbits.certify`."""
        return certify(self, X, sensitive_features=sensitive_features, y=y, **options)

    def concerns(self, X, y=None, sensitive_features=None) -> list[Warning]:
        return collapsed_code(self.code_probabilities(X)) or super().concerns(X, y, sensitive_features)

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
