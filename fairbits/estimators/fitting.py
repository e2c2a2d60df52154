"""From a user's table to a trained stack of estimators."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from fairbits.estimators.inputs import Table, read_table
from fairbits.estimators.settings import check_settings
from fairbits.metrics import discrimination_curve_area, group_pairwise_accuracy_gap
from fairbits.training import Replica, Schedule, TrainingData, split_rows, train

MIN_VALIDATION_ROWS = 10
OnEpoch = Callable[[int, int], None]


def fit_stack(
    estimators: Sequence[Any],
    X,
    y,
    *,
    sensitive_features=None,
    sample_weight=None,
    rows: Sequence[np.ndarray] | None = None,
    on_epoch: OnEpoch | None = None,
) -> Sequence[Any]:
    """Fit several estimators of one architecture as one tensor program; each as if it had been fitted alone.

    They may differ in `random_state`, in the `stacked_settings` of their class (gamma, learning rate, ...) and in the
    rows they see: `rows` holds one index array per estimator, for example folds. They are fitted in place and
    returned. `on_epoch` is called with (epochs done, epochs at most).
    """
    first = estimators[0]
    _check_alike(estimators)
    table = read_table(first, X, y, sensitive_features, sample_weight)
    for estimator in estimators:
        _describe(estimator, first, table)
    replicas = [_replica(e, table, None if rows is None else rows[i]) for i, e in enumerate(estimators)]
    with _progress(first.verbose, len(estimators), on_epoch) as report:
        _train(first, table, replicas, report)
    for estimator, replica in zip(estimators, replicas, strict=True):
        estimator.net_ = replica.net.eval().requires_grad_(False)
        estimator.history_, estimator.best_epoch_ = replica.history, replica.best_epoch
        estimator.n_iter_ = len(replica.history)
    return estimators


def _check_alike(estimators: Sequence[Any]) -> None:
    first = estimators[0]
    free = {"random_state", *first.stacked_settings}
    for estimator in estimators:
        check_settings(estimator)
        for field in dataclasses.fields(first):
            own, other = getattr(first, field.name), getattr(estimator, field.name)
            if type(estimator) is not type(first) or (field.name not in free and own != other):
                raise ValueError(
                    f"{type(estimator).__name__} with {field.name}={other!r} cannot train in one stack with "
                    f"{type(first).__name__} with {field.name}={own!r}; one stack may differ only in {sorted(free)}."
                )


def _describe(estimator: Any, first: Any, table: Table) -> None:
    """Set what a fit knows before training; a stack shares one table."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(first, name):
            setattr(estimator, name, getattr(first, name))
        elif hasattr(estimator, name):
            delattr(estimator, name)
    estimator.classes_ = table.classes
    estimator.group_encoder_ = table.group_encoder
    estimator.groups_ = [] if table.group_encoder is None else table.group_encoder.names_


def _replica(estimator: Any, table: Table, rows: np.ndarray | None) -> Replica:
    seed = check_random_state(estimator.random_state).randint(2**31)
    init, split, loop = (int(k) for k in np.random.SeedSequence(seed).generate_state(3))
    own = np.arange(len(table.y)) if rows is None else np.flatnonzero(np.isin(table.source, rows))
    generator = torch.Generator().manual_seed(split)
    strata = torch.from_numpy(_cells(table.y[own], table.s[own]))
    train_rows, held = split_rows(strata, estimator.validation_fraction, generator)
    if len(held) < MIN_VALIDATION_ROWS:
        train_rows = held = torch.arange(len(own))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(init)
        net = estimator.build(table.x.shape[1], len(table.classes)).to(estimator.device)
    scalars = {name: float(getattr(estimator, name)) for name in estimator.stacked_settings}
    held = held[: estimator.max_validation_rows]
    train_rows, held = (torch.from_numpy(own)[part] for part in (train_rows, held))
    return Replica(net=net, rows=train_rows, validation=held, seed=loop, scalars=scalars)


def _train(first: Any, table: Table, replicas: list[Replica], report: OnEpoch | None) -> None:
    strata = _cells(table.y, table.s) if first.stratify_by_label else _cells(table.s)
    arrays = (table.x, table.y, table.s, table.weight, strata)
    data = TrainingData(*(torch.from_numpy(a).to(first.device) for a in arrays))
    schedule = Schedule(**{f.name: getattr(first, f.name) for f in dataclasses.fields(Schedule)})
    select = _PaperSelection(table) if first.selection == "paper" else None
    train(replicas, data, first.loss, first.evaluate, schedule, prepare=first.prepare, select=select, on_epoch=report)


def _cells(*columns: np.ndarray) -> np.ndarray:
    """Number the distinct combinations of columns."""
    stacked = np.column_stack([*columns, np.zeros(len(columns[0]), np.int64)])
    return np.unique(stacked, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


class _PaperSelection:
    """The paper's AUC + (1 - GPA) + (1 - AUDC) on the validation rows, negated; several columns: the worst of them."""

    def __init__(self, table: Table):
        self.table = table

    def __call__(self, replica: Replica, probabilities: torch.Tensor) -> float:
        rows, p = replica.validation.numpy(), probabilities.cpu().numpy()
        y, score = self.table.y[rows], p[:, 1] if p.shape[1] == 2 else p
        auc = roc_auc_score(y, score, multi_class="ovr")
        gaps = [
            group_pairwise_accuracy_gap(y, score, sensitive_features=s)
            + discrimination_curve_area(score, sensitive_features=s)
            for s in self.table.s[rows].T
        ]
        return max(gaps, default=0.0) - auc


@contextlib.contextmanager
def _progress(verbose: bool, n: int, on_epoch: OnEpoch | None) -> Iterator[OnEpoch | None]:
    if not verbose:
        yield on_epoch
        return
    from rich.progress import Progress

    with Progress(transient=True) as bar:
        task = bar.add_task(f"training {n} model{'s' if n > 1 else ''}")

        def report(done: int, most: int) -> None:
            bar.update(task, completed=done, total=most)
            if on_epoch is not None:
                on_epoch(done, most)

        yield report
