"""What is audited: a fitted model with or without a code, or a representation that somebody passed on."""

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
        """The name of the view that is released."""
        return next(iter(self.views))

    def group_encoder(self, sensitive_features: Any) -> GroupEncoder:
        """Return the groups of the fitted model, or those of the audited rows."""
        encoder = getattr(self.model, "group_encoder_", None)
        n = len(self.views[self.released])
        return encoder or GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=n)


def read_subject(source: Any, X: Any, draws: int, random_state: int) -> Subject:
    """Return the subject of an audit, whatever it is."""
    source, X = fitted_code(source, X)
    name = type(source).__name__
    if not (isinstance(draws, Integral) and draws >= 2):
        raise InputError("must be a whole number of at least 2.", argument="draws", value=draws)
    if hasattr(source, "__array__") or hasattr(source, "toarray") or isinstance(source, (list, tuple)):
        if X is not None:
            raise InputError("A representation is audited as it is.", remedy="Pass it alone, with X=None.")
        return _given(source, "the representation", {"task": "a representation alone predicts nothing; audit a model."})
    if X is None:
        raise InputError("X is None, but a model is audited on rows.", remedy="Pass the rows as X.")
    if hasattr(source, "code_probabilities"):
        theta = source.code_probabilities(X)
        rng = np.random.default_rng(random_state)
        drawn = [(rng.random(theta.shape) < theta).astype(np.uint8) for _ in range(draws)]
        views = {"one draw": drawn[0], f"{draws} draws": np.mean(drawn, axis=0), "theta": theta}
        return Subject(name, views, theta, theta, source, X)
    if not hasattr(source, "transform") and not hasattr(source, "predict_proba"):
        raise InputError(f"{name} has neither transform nor predict_proba.", remedy="Pass what it computes instead.")
    values = source.transform(X) if hasattr(source, "transform") else source.predict_proba(X)
    if hasattr(source, "predict_proba"):
        return _given(values, name, {}, model=source, X=X)
    return _given(values, name, {"task": f"{name} has no predict_proba."}, X=X)


def _given(values: Any, name: str, unavailable: dict[str, str], **model: Any) -> Subject:
    """Read a table of values: a code if rows repeat, else real-valued."""
    values = _numbers(values)
    unavailable = unavailable | {"several draws, theta": "how the representation was drawn is not known."}
    bits = values if np.isin(values, (0, 1)).all() else None
    if bits is None:
        unavailable["information of each bit"] = "the columns are not bits."
    distinct, cell = np.unique(values, axis=0, return_inverse=True)
    law: np.ndarray | None = None
    if len(distinct) * REPEATS <= len(values):
        law = binary_digits(cell.ravel(), len(distinct))
    else:
        reason = (
            f"it has {len(distinct)} different values in {len(values)} rows, and continuous values cannot be "
            "certified. Certify the decision (a score above a threshold), or use a fairbits code."
        )
        unavailable |= {"joint information": reason, "certificate": reason}
    return Subject(name, {"as given": values}, law, bits, unavailable=unavailable, **model)


def _numbers(values: Any) -> np.ndarray:
    """Return a table of numbers that reveals the same: categories become a column each, or their number if many."""
    table = values.to_pandas() if hasattr(values, "to_pandas") else values
    table = table.toarray() if hasattr(table, "toarray") else table  # scipy's sparse matrices
    if not hasattr(table, "columns") and np.ndim(table) not in (1, 2):
        raise InputError(f"The representation has shape {np.shape(table)}.", remedy="Pass one row per person.")
    columns = []
    for _, column in pd.DataFrame(table).items():
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            codes, names = pd.factorize(column, use_na_sentinel=False)
            columns.append(np.eye(len(names))[codes] if len(names) <= MOST_CATEGORIES else codes)
    numbers = np.column_stack(columns).astype(np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("The representation is empty, or has missing or infinite values.", remedy="Fill or drop them.")
    return numbers
