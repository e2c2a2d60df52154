"""What an audit is about: a certified decision, a code, or values of any kind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbits.certificate.released_code import binary_digits, certified_decision, fitted_code, last_step
from fairbits.encoding import GroupEncoder
from fairbits.errors import InputError
from fairbits.settings import check_value

MOST_CATEGORIES, MOST_DECISIONS = 256, 20
REPEATS = 2  # rows per distinct value from which a representation is counted as a code


@dataclass(frozen=True)
class Subject:
    """The representation in the forms the audit needs."""

    name: str
    model: Any  # with predict_proba, for the task; else None
    X: Any  # rows as the model sees them
    views: dict[str, np.ndarray]  # what probes are given; the first is what is released
    law: np.ndarray | None  # (n, bits) chances of bits that say the same as the release; None where there is no such
    bits: np.ndarray | None  # (n, m) chances of the code's own bits
    unavailable: dict[str, str]
    decides_for: GroupEncoder | None = None  # of a model whose class alone is certified: its groups
    is_decision: bool = False  # each row has one value of few: nobody receives a code


def read_subject(source: Any, X: Any, draws: int, random_state: int, sensitive_features: Any) -> Subject:
    """Return the subject of an audit: a certified decision, a model with a code, any other, or a table of values."""
    if certified_decision(source) and X is not None:
        return _read_decision(source, X, sensitive_features)
    source, X = fitted_code(source, X, sensitive_features)
    name, task = type(source).__name__, dict[str, str]()
    check_value("draws", draws, at_least=2, whole=True)
    if hasattr(source, "__array__") or hasattr(source, "toarray") or isinstance(source, (list, tuple)):
        if X is not None:
            raise InputError(
                "X is for models, not for representations.", remedy="Pass the representation alone, with X=None."
            )
        name, values, source = "the representation", source, None
        task = {"task": "a representation makes no predictions; audit a model to get scores."}
    elif X is None:
        raise InputError("X is None, but a model is audited on rows.", remedy="Pass the rows as X.")
    elif hasattr(source, "code_probabilities"):
        return _read_code(source, X, draws, random_state)
    elif hasattr(source, "predict_proba"):
        values = source.transform(X) if hasattr(source, "transform") else source.predict_proba(X)
    elif hasattr(source, "transform"):
        values, source, task = source.transform(X), None, {"task": f"{name} has no predict_proba."}
    else:
        raise InputError(f"{name} has neither transform nor predict_proba.", remedy="Pass its output instead.")
    return _read_values(name, source, X, values, task)


def _read_values(name: str, source: Any, X: Any, given: Any, task: dict[str, str]) -> Subject:
    """Return values of any kind; those of one column that has few of them are decisions."""
    values, law = _numbers(given), None
    unavailable = task | {"several draws, theta": "how the representation was drawn is not known."}
    bits = values if np.isin(values, (0, 1)).all() else None
    if bits is None:
        unavailable["information of each bit"] = "the columns are not bits."
    distinct, cell = np.unique(values, axis=0, return_inverse=True)
    is_decision = (
        source is None and np.ndim(given) == 1 and len(distinct) <= min(MOST_DECISIONS, len(values) // REPEATS)
    )
    if is_decision:
        name, bits, unavailable = "the decision", None, task
    if len(distinct) * REPEATS <= len(values):
        law = binary_digits(cell.ravel(), len(distinct))
    else:
        unavailable["joint information"] = unavailable["certificate"] = (
            f"it has {len(distinct)} different values in {len(values)} rows, and continuous values cannot be "
            "certified. Certify the decision (a score above a threshold), or use a fairbits code."
        )
    return Subject(name, source, X, {"as given": values}, law, bits, unavailable, is_decision=is_decision)


def _read_code(source: Any, X: Any, draws: int, random_state: int) -> Subject:
    """Return a hard code as it is; of a random one, also what several draws and their probabilities would reveal."""
    theta, rng = source.code_probabilities(X), np.random.default_rng(random_state)
    views = {"code": theta.astype(np.uint8)}
    if not source.is_hard:
        drawn = [(rng.random(theta.shape) < theta).astype(np.uint8) for _ in range(draws)]
        views = {"one draw": drawn[0], f"{draws} draws": np.mean(drawn, axis=0), "theta": theta}
    return Subject(type(source).__name__, source, X, views, theta, theta, {})


def _read_decision(source: Any, X: Any, sensitive_features: Any) -> Subject:
    """Return the class of a model, which alone is certified."""
    method, rows = last_step(source.estimator_, X, sensitive_features)
    decided = np.searchsorted(source.classes_, source.predict(X, sensitive_features=sensitive_features))
    law, scored = binary_digits(decided, len(source.classes_)), hasattr(method, "predict_proba")
    unavailable = {} if scored else {"task": f"{type(method).__name__} has no predict_proba."}
    found = (type(method).__name__, method if scored else None, rows, {"decision": law.astype(np.uint8)})
    return Subject(*found, law, None, unavailable, source.group_encoder_, is_decision=True)


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
