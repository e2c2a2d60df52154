"""Codes of bits: what all methods with one share, scores on held-out rows, and a coarse code for codes too wide."""

import hashlib
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array, check_is_fitted, check_random_state
from torch import Tensor

from fairbits.certificate import Certificate, Release, certify
from fairbits.certificate.released_code import check_certified_kind, fitted_code, system_uniforms
from fairbits.errors import InputError, InputWarning
from fairbits.estimators.base import InvariantClassifier, OwnDtypeMixin, TrainedClassifier, softmax
from fairbits.information import binary_entropy, joint_information, monte_carlo_information, total_variation
from fairbits.information.words import MAX_BITS
from fairbits.metrics.gaps import prediction_scores
from fairbits.settings import check_value, setting

EXACT_COST = 2**32  # rows times code words up to which `code_information` sums exactly


class CollapsedCodeWarning(InputWarning):
    """All bits are the same for every row: the code reveals nothing, not even the label."""


class BitsMixin(OwnDtypeMixin):
    """What every model with a code of bits can do."""

    def certify(self, X: Any, *, sensitive_features: Any, y: Any = None, **options: Any) -> Certificate:
        """Prove from held-out rows what any recipient can do with the code; options as in `fairbits.certify`."""
        return certify(self, X, sensitive_features=sensitive_features, y=y, **options)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the bits: bit0, bit1, ..."""
        check_is_fitted(self)
        return np.array([f"bit{i}" for i in range(fitted_code(self, None)[0].code_size)], dtype=object)


class FittedCodeMixin(ClassifierMixin, BitsMixin):
    """Predict and transform by the code inside `estimator_`, of which encoders may need the sensitive features."""

    __metadata_request__score: ClassVar = {"sensitive_features": True}  # told or not, it takes them

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the most probable class of each row."""
        method, rows = self._inside(X, sensitive_features)
        return method.predict(rows, **sensitive_keyword(method.predict, sensitive_features))

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the code of each row, what you may share: of a random code, one draw per person.  (n, bits) uint8"""
        method, rows = self._inside(X, sensitive_features)
        return method.transform(rows)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the probability of each class; a certificate covers those of a hard code, **not** of a random one."""
        method, rows = self._inside(X, sensitive_features)
        return method.predict_proba(rows, **sensitive_keyword(method.predict_proba, sensitive_features))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of `predict`."""
        return accuracy_score(y, self.predict(X, sensitive_features=sensitive_features), sample_weight=sample_weight)

    def _inside(self, X: Any, sensitive_features: Any) -> tuple[Any, Any]:
        """Return the method and the rows as it sees them."""
        check_is_fitted(self)
        method, rows = fitted_code(self, X, sensitive_features)
        check_certified_kind(method, getattr(self, "certificate_", None))
        return method, rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


def sensitive_keyword(call: Any, s: Any) -> dict[str, Any]:
    """Return the sensitive features as a keyword of a function that takes them; fairlearn's may not name it."""
    if call is None:
        return {}
    parameters = signature(call).parameters.values()
    any_name = call.__module__.startswith("fairlearn.") and any(p.kind is p.VAR_KEYWORD for p in parameters)
    return {"sensitive_features": s} if any_name or any(p.name == "sensitive_features" for p in parameters) else {}


class TrainedCode(BitsMixin, TrainedClassifier):
    """What every method with a code has; see `CodeClassifier` for the parameters."""

    code_size: int = setting(8, at_least=1, whole=True)
    condition_on_label: bool = setting(False, one_of=(False, True))

    protects: ClassVar[bool] = True

    @property
    def is_hard(self) -> bool:
        """Whether a row has one code, however often it is asked for; else every call draws."""
        return False

    def probabilities(self, net: Any, x: Tensor) -> Tensor:
        return net.expected(net.theta(x), softmax)

    def sampled_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities that the head gives to one fresh draw of each row."""
        return self.decode(self.draw(X))

    def transform(self, X: Any) -> np.ndarray:
        """Draw one code per row: fresh random bits at every call.  (n, code_size) uint8

        This is what you may share, once per person: two draws of a person reveal more than one, and
        `code_probabilities` reveal everything. `fairbits.release` keeps count of who has received a code. A hard code
        (`is_hard`) has no random bits: it is the same at every call.
        """
        return self.draw(X)

    def draw(self, X: Any, *, draws: int = 1, eps: float = 0.0, coarse: Any = None) -> np.ndarray:
        """Draw another kind of release: several codes side by side, noisier bits, or the cell of a coarse code.

        The parameters are those of `fairbits.certificate.Release`; `certify` takes the same.
        """
        uniforms = system_uniforms if self.random_state is None else check_random_state(self.random_state).rand
        return Release(draws, eps, coarse, self.is_hard).draw(self.code_probabilities(X), uniforms)

    def decode(self, codes: Any) -> np.ndarray:
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

    def code_probabilities(self, X: Any) -> np.ndarray:
        """Return theta, the probability that each bit is 1: for audits, not for release.  (n, code_size)"""
        return self._by_rows(X, lambda net, x: net.theta(x))

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same weights, by which a ledger knows the model."""
        check_is_fitted(self)
        weights = (tensor.cpu().numpy().tobytes() for tensor in self.net_.state_dict().values())
        return hashlib.blake2b(b"".join(weights), digest_size=16).hexdigest()

    def information(self, X: Any, *, sensitive_features: Any, y: Any = None) -> float:
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

    def concerns(self, X: Any, y: Any = None, sensitive_features: Any = None) -> list[Warning]:
        theta = torch.from_numpy(self.code_probabilities(X))
        about_rows = binary_entropy(theta.mean(0)) - binary_entropy(theta).mean(0)  # I(T_i;X) of each bit
        if float(about_rows.max()) >= 1e-3:  # bits
            return super().concerns(X, y, sensitive_features)
        alike = f"all {theta.shape[1]} bits are the same for every row, so it predicts nothing"
        remedy = f"{self.weaker}, or train longer (max_epochs, warmup_epochs)."
        return [CollapsedCodeWarning(f"The code has collapsed: {alike}.", remedy=remedy)]


class CodeClassifier(TrainedCode, InvariantClassifier):
    """Base of the methods with a code T of bits: a network gives theta(x), and T_i is 1 with probability theta_i(x).

    Parameters
    ----------
    code_size : bits per row
    condition_on_label : measure the leakage within each label, for equalised odds

    The other parameters are those of all methods; see `InvariantClassifier`.
    """


def code_information(theta: np.ndarray, groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return the information of one draw about numbered groups (n, columns), in bits, for reports.

    The largest over the columns; with labels y, the mean within labels, I(T;S|Y). Exact unless the code is wide or the
    table long; then the mean of 2,000 draws.
    """

    def measured(t: Tensor, column: np.ndarray) -> float:
        s = torch.from_numpy(np.unique(column, return_inverse=True)[1])
        n, m = t.shape
        if m <= MAX_BITS and n * 2**m <= EXACT_COST:
            return float(joint_information(t, s))
        return float(monte_carlo_information(t, s, 2_000, generator=torch.Generator().manual_seed(0))[0])

    labels = np.zeros(len(theta)) if y is None else np.asarray(y)
    strata = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    table = torch.from_numpy(theta)
    return max(sum(len(r) / len(theta) * measured(table[r], column[r]) for r in strata) for column in groups.T)


def code_disparity(theta: np.ndarray, groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return the largest disparity of any decision made from one draw, between numbered groups (n, columns).

    The largest over the columns; with labels y, among rows of the same label.
    """
    labels, table = np.zeros(len(theta)) if y is None else np.asarray(y), torch.from_numpy(theta)
    strata = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    columns = [torch.from_numpy(column) for column in groups.T]
    return max(float(total_variation(table[rows], column[rows])) for rows in strata for column in columns)


def held_out_scores(model: Any, X: Any, y: np.ndarray, s: np.ndarray, codes: Any = None) -> dict[str, float]:
    """Return the scores of a fitted estimator on rows X; s (n, columns) are group numbers, the worst column counts.

    auc, accuracy: more is better; gpa, audc, discrimination: less. A method with a code also gets the scores of the
    prediction from one drawn code (one_draw_..., of `codes` or fresh ones) and the information of one draw, in bits:
    less is better. A rival whose labels are drawn gets the scores of one draw, too.

    Our methods predict without s. A rival that cannot (`groups_at_prediction`, see `fairbits.rivals`) gets s and must
    have been fitted to the same numbers.
    """
    known = {"sensitive_features": s} if getattr(model, "groups_at_prediction", False) else {}
    scores = prediction_scores(model.predict_proba(X, **known), model.classes_, y, s)
    if hasattr(model, "sampled_proba") and not getattr(model, "is_hard", False):
        shown = model.sampled_proba(X, **known) if codes is None else model.decode(codes)
        drawn = prediction_scores(shown, model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in drawn.items()}
    if hasattr(model, "decode"):
        theta = model.code_probabilities(X)
        scores["information"] = code_information(theta, s)
        if model.condition_on_label:
            scores["information_within_labels"] = code_information(theta, s, y)
    return scores


@dataclass(frozen=True)
class CoarseCode:
    """Codes (n, m) to the numbers of their cells (n,): the centre nearest to the head's class probabilities."""

    estimator: Any
    centres: np.ndarray  # (cells, classes)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        distance = self.estimator.decode(codes)[:, None, :] - self.centres
        return (distance**2).sum(-1).argmin(1)


def fit_coarse_code(estimator: Any, X_train: Any, n_cells: int) -> CoarseCode:
    """Group codes into cells by what the head predicts from them, to release the cell instead of the code.

    ``estimator.draw(X, coarse=cells)`` draws them and ``certify(..., coarse=cells)`` certifies them: with few
    cells the bound is tight even where the code itself has far more words than there are rows. The rows must be
    training rows, not those that certify.

    Parameters
    ----------
    estimator : fitted, with a code, also at the end of a pipeline
    X_train : rows it was trained on
    n_cells : at least 2
    """
    check_value("n_cells", n_cells, at_least=2, whole=True)
    estimator, X_train = fitted_code(estimator, X_train)
    theta = estimator.code_probabilities(X_train)
    codes = np.random.default_rng(0).random(theta.shape) < theta
    points, counts = np.unique(estimator.decode(codes), axis=0, return_counts=True)
    if len(points) < n_cells:
        problem = f"n_cells={n_cells}, but the training rows have only {len(points)} different codes; ask for fewer."
        raise InputError(problem)
    centres = KMeans(n_cells, n_init=4, random_state=0).fit(points, sample_weight=counts).cluster_centers_
    return CoarseCode(estimator, centres[centres[:, -1].argsort()])
