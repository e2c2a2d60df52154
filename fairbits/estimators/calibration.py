"""What calibration rows say of the models of a path: rows in memory, or sums of rows that come in pieces."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from fairbits.certificate import Certificate, CertificateState
from fairbits.certificate.certification import CodedRows
from fairbits.estimators.promises import released_class
from fairbits.metrics.gaps import mcnemar_p_value, p_value_of_counts

SMALLEST = 1e-12  # probability in the log-loss
Piece = tuple[np.ndarray, np.ndarray, Any]  # rows as the method takes them, labels, sensitive features
Pieces = Callable[[Any], Iterable[Piece]]  # for a fitted pipeline


class Calibration(Protocol):
    """What is asked of calibration rows."""

    rows: int

    def certificates(self, model: Any) -> dict[str, Certificate]:
        """Return what the rows prove about each part of a model that must keep the limits."""

    def accuracy(self, model: Any) -> float:
        """Return how often the class of a model is right."""

    def log_loss(self, model: Any) -> float:
        """Return the log-loss of a model, in bits."""

    def p_value(self, first: Any, second: Any) -> float:
        """Return the p-value of McNemar's test: is the first model right more often than the second?"""


class CalibrationRows:
    """Rows in memory; `prove` returns the certificates of a model on them, if they calibrate."""

    def __init__(self, X: Any, y: np.ndarray, prove: Callable[[Any], dict[str, Certificate]] = lambda model: {}):
        self.X, self.y, self.rows, self.certificates = X, y, len(y), prove

    def accuracy(self, model: Any) -> float:
        return float((model.predict(self.X) == self.y).mean())

    def log_loss(self, model: Any) -> float:
        return -float(_logs(model, self.X, self.y).mean())

    def p_value(self, first: Any, second: Any) -> float:
        return mcnemar_p_value(self.y, first.predict(self.X), second.predict(self.X))


class CalibrationSums:
    """Sums of calibration rows for all models of a path: the same size however many rows there are.

    `parts` are what of each model must keep the limits: code, class or both; `labels` are the classes within which the
    disparity is bounded, too.
    """

    def __init__(
        self,
        models: Sequence[Any],
        pieces: Iterable[Piece],
        parts: Sequence[str],
        labels: Any = None,
        confidence: float = 0.95,
    ):
        self._place, self._confidence, self.rows = {id(model): i for i, model in enumerate(models)}, confidence, 0
        self._states = [{part: _state(model, part, labels) for part in parts} for model in models]
        self._right = np.zeros((len(models), len(models)), dtype=np.int64)  # rows where both models are right
        self._logs = np.zeros(len(models))
        for X, y, s in pieces:
            self._add(models, X, y, s, labels)

    def _add(self, models: Sequence[Any], X: np.ndarray, y: np.ndarray, s: Any, labels: Any) -> None:
        right = np.zeros((len(y), len(models)), dtype=bool)
        for place, (model, states) in enumerate(zip(models, self._states, strict=True)):
            right[:, place] = model.predict(X) == y
            self._logs[place] += _logs(model, X, y).sum()
            for part, state in states.items():
                coded = released_class(model, X) if part == "class" else _coded(model, X)
                state.add(coded, sensitive_features=s, y=None if labels is None else y)
        self._right += (right.T.astype(np.float64) @ right).astype(np.int64)
        self.rows += len(y)

    def certificates(self, model: Any) -> dict[str, Certificate]:
        states = self._states[self._place[id(model)]]
        return {part: state.finish(self._confidence) for part, state in states.items()}

    def accuracy(self, model: Any) -> float:
        place = self._place[id(model)]
        return float(self._right[place, place] / self.rows)

    def log_loss(self, model: Any) -> float:
        return -float(self._logs[self._place[id(model)]] / self.rows)

    def p_value(self, first: Any, second: Any) -> float:
        one, two = self._place[id(first)], self._place[id(second)]
        both = self._right[one, two]
        return p_value_of_counts(int(self._right[one, one] - both), int(self._right[two, two] - both))


def _state(model: Any, part: str, labels: Any) -> CertificateState:
    if part == "class":
        return CertificateState(model.classes_.tolist(), groups=model.group_encoder_, labels=labels)
    return CertificateState(model, labels=labels)


def _coded(model: Any, X: np.ndarray) -> CodedRows:
    return CodedRows(model.code_probabilities(X).astype(np.float64), model.group_encoder_, hard=model.is_hard)


def _logs(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.log2(np.maximum(own, SMALLEST))
