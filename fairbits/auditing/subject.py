"""What is audited: a fitted model with or without a code, or a representation as somebody handed it over."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from fairbits.certificate import binary_digits, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.errors import InputError

MOST_CATEGORIES = 256
REPEATS = 2  # rows per distinct value from which a representation is counted as a code


@dataclass(frozen=True)
class Subject:
    """The representation in the forms the audit needs."""

    name: str
    views: dict[str, np.ndarray]  # what probes are given; the first is what is released
    law: np.ndarray | None  # (n, bits) chances of bits that say the same as the release; None where there is no such
    bits: np.ndarray | None  # (n, m) chances of the code's own bits
    model: Any = None  # with predict_proba, for the task
    X: Any = None  # rows as the model sees them
    unavailable: dict[str, str] = field(default_factory=dict)

    @property
    def released(self) -> str:
        """The name of the view that is handed on."""
        return next(iter(self.views))


def read_subject(source: Any, X: Any, draws: int, random_state: int) -> Subject:
    """Take the source for what it is."""
    source, X = fitted_code(source, X)
    if not (isinstance(draws, Integral) and draws >= 2):
        raise InputError(f"draws={draws!r} must be a whole number of at least 2: one draw is shown anyway.")
    if hasattr(source, "__array__") or hasattr(source, "toarray") or isinstance(source, (list, tuple)):
        if X is not None:
            raise InputError("X goes with a fitted model; the representation itself is the first argument, X=None.")
        return _given(source, "the representation", {"task": "a representation alone predicts nothing; audit a model."})
    if X is None:
        raise InputError("X is None; pass the rows to audit the model on.")
    if hasattr(source, "code_probabilities"):
        return _code(source, X, draws, random_state)
    if not hasattr(source, "transform") and not hasattr(source, "predict_proba"):
        raise InputError(f"{type(source).__name__} has neither transform nor predict_proba; pass what it hands on.")
    values = source.transform(X) if hasattr(source, "transform") else source.predict_proba(X)
    model = source if hasattr(source, "predict_proba") else None
    missing = {} if model else {"task": f"{type(source).__name__} has no predict_proba."}
    return _given(values, type(source).__name__, missing, model=model, X=X)


def group_encoder(subject: Subject, sensitive_features: Any) -> GroupEncoder:
    """Return the groups of the fitted model, or those of the audited rows."""
    encoder = getattr(subject.model, "group_encoder_", None)
    if encoder is None:
        encoder = GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=len(subject.views[subject.released]))
    return encoder


def _code(model: Any, X: Any, draws: int, random_state: int) -> Subject:
    theta = model.code_probabilities(X)
    rng = np.random.default_rng(random_state)
    drawn = [(rng.random(theta.shape) < theta).astype(np.uint8) for _ in range(draws)]
    views = {"one draw": drawn[0], f"{draws} draws": np.mean(drawn, axis=0), "theta": theta}
    return Subject(type(model).__name__, views, theta, theta, model, X)


def _given(values: Any, name: str, unavailable: dict[str, str], **model: Any) -> Subject:
    """Read a table of values: a code if rows repeat, else real-valued."""
    values = _numbers(values)
    unavailable = unavailable | {
        "several draws, theta": "the representation is known as it was given; how it was drawn is not."
    }
    bits = values if np.isin(values, (0, 1)).all() else None
    if bits is None:
        unavailable["information of each bit"] = "the columns are not bits."
    distinct, cell = np.unique(values, axis=0, return_inverse=True)
    law: np.ndarray | None = None
    if len(distinct) * REPEATS <= len(values):
        law = binary_digits(cell.ravel(), len(distinct))
    else:
        reason = (
            f"it has {len(distinct)} different values in {len(values)} rows. What anybody could read from it cannot be "
            "bounded from rows where almost every one has a value of its own; a random code has a law to sum over"
        )
        unavailable |= {"joint information": reason + ".", "certificate": reason + "."}
    return Subject(name, {"as given": values}, law, bits, unavailable=unavailable, **model)


def _numbers(values: Any) -> np.ndarray:
    """Return a table of numbers that tells the same: categories become a column each, or their number if many."""
    table = values.to_pandas() if hasattr(values, "to_pandas") else values
    table = table.toarray() if hasattr(table, "toarray") else table  # scipy's sparse matrices
    if not hasattr(table, "columns"):
        table = np.asarray(table)
        if table.ndim not in (1, 2):
            raise InputError(f"The representation has shape {table.shape}; pass one row of values per person.")
    columns = [column for _, column in pd.DataFrame(table).items()]
    numbers = np.column_stack([_column(column) for column in columns]).astype(np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("The representation is empty, or holds missing or infinite values; fill or drop them first.")
    return numbers


def _column(column: pd.Series) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, names = pd.factorize(column, use_na_sentinel=False)
    return np.eye(len(names))[codes] if len(names) <= MOST_CATEGORIES else codes
