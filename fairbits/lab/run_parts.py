"""What runs are made of: the rows of a fold, seeds, estimators, and the scores of a fitted one."""

import hashlib
from dataclasses import fields, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fairbits import datasets
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError
from fairbits.estimators.codes import held_out_scores
from fairbits.estimators.fitting import stratified_folds
from fairbits.lab import run_settings as settings
from fairbits.metrics.gaps import prediction_scores
from fairbits.metrics.ranks import rank_curve_area, signed_pairwise_gap
from fairbits.training import Schedule

Result = dict[str, Any]


class Part(NamedTuple):
    """Rows of a dataset: columns as numbers, labels, group numbers (n, 1)."""

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray


def external_fold(dataset: str, fold: int, folds: int, seed: int) -> tuple[Part, Part]:
    """Return the training and the test rows of a fold; the encoder is fitted to the training rows."""
    data = getattr(datasets, f"load_{dataset}")()
    y, s = data.y.to_numpy(), np.unique(data.s, return_inverse=True)[1][:, None]
    train, test = stratified_folds(y, s, folds, seed)[fold]
    encoder = TableEncoder().fit(data.X.iloc[train])
    X_train, X_test = (np.asarray(encoder.transform(data.X.iloc[rows])) for rows in (train, test))
    return Part(X_train, y[train], s[train]), Part(X_test, y[test], s[test])


def with_groups(method: settings.Method, *parts: Part) -> list[Part]:
    """Return rows as a method sees them: with a column for every group but the first, if it is sees S."""
    if not method.sees_groups:
        return list(parts)
    return [part._replace(X=np.column_stack([part.X, *_indicators(part.s)]).astype(part.X.dtype)) for part in parts]


def _indicators(s: np.ndarray) -> list[np.ndarray]:
    return [column == group for column in s.T for group in range(1, int(column.max()) + 1)]


def seed_of(*names: Any) -> int:
    """Return a seed that depends on names alone.

    >>> seed_of("compas", "BinaryMI", 0) == seed_of("compas", "BinaryMI", 0) != seed_of("compas", "BinaryMI", 1)
    True
    """
    return int.from_bytes(hashlib.sha256("/".join(map(str, names)).encode()).digest()[:4]) // 2


def common_seed(run: Any, fold: int) -> int:
    """Return the seed that all methods share on a fold: it depends on the rows and on the run's seed alone."""
    return seed_of(run.dataset, run.fold_seed, run.folds, fold, run.seed)


def estimator_of(method: settings.Method, **more: Any) -> Any:
    """Return the estimator of a method, with its fixed settings and more; one of your own is "module:Class".

    A setting "base" is another method, the base learner of the reductions.
    """
    try:
        cls, values = _estimator_class(method.estimator), {**method.settings, **more}
        if "base" in values:
            values["estimator"] = estimator_of(settings.Method(**values.pop("base")))
        schedule = {f.name: values.pop(f.name) for f in fields(Schedule) if f.name in values}
        if schedule:  # plans write its settings beside the others
            values["schedule"] = replace(cls.own_schedule, **schedule)
        return cls(**values)
    except TypeError as error:
        problem = f"does not take the settings {method.settings}: {error}."
        raise InputError(problem, argument="estimator", value=method.estimator) from None


def _estimator_class(name: str) -> Any:
    module, _, own = name.rpartition(":")
    try:
        homes = [import_module(home) for home in ([module] if module else ["fairbits", "fairbits.rivals"])]
    except ImportError as error:
        problem = f"cannot be imported: {error}. The module has to be on PYTHONPATH."
        raise InputError(problem, argument="estimator", value=name) from None
    found = [getattr(home, own) for home in homes if hasattr(getattr(home, own, None), "fit")]
    if not found:
        problem = "is not an estimator of fairbits; name your own as 'module:Class'."
        raise InputError(problem, argument="estimator", value=name)
    return found[0]


def order_scores(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return the scores of `prediction_scores`, with the signed GPA and the AUDC of ranks of two classes."""
    scores = prediction_scores(probabilities, classes, y, s)
    if probabilities.shape[1] == 2:
        columns = [{"sensitive_features": column} for column in s.T]
        scores["signed_gpa"] = max((signed_pairwise_gap(y, probabilities[:, 1], **c) for c in columns), key=abs)
        scores["rank_audc"] = max(rank_curve_area(probabilities[:, 1], **c) for c in columns)
    return scores


def scores_of(model: Any, test: Part) -> dict[str, float]:
    """Return `held_out_scores` of a fitted model, with the scores of `order_scores`, also of the same one draw."""
    X, y, s = test
    known = {"sensitive_features": s} if getattr(model, "groups_at_prediction", False) else {}
    draws = hasattr(model, "decode") and not model.is_hard
    codes = model.transform(X) if draws else None
    scores = held_out_scores(model, X, y, s, codes) | order_scores(
        model.predict_proba(X, **known), model.classes_, y, s
    )
    if draws:
        shown = order_scores(model.decode(codes), model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in shown.items()}
    return scores
