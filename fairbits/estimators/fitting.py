"""From a user's table to a trained stack of estimators."""

import contextlib
import copy
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from fairbits.errors import InputError
from fairbits.estimators.inputs import Table, read_table
from fairbits.estimators.settings import check_settings
from fairbits.metrics import paper_objective
from fairbits.metrics.gaps import prediction_scores
from fairbits.training import Opponent, Replica, TrainingData, TrainingPlan, split_rows, train

MIN_VALIDATION_ROWS = 10
OnEpoch = Callable[[int, int], None]
Hopeless = Callable[[int, list[list[dict[str, float]]]], Collection[int]]
_WATCHER: ContextVar[OnEpoch | None] = ContextVar("watcher", default=None)
_BUILDING = threading.Lock()  # networks initialise from torch's global generator, which is seeded for each


def fit_stack(
    estimators: Sequence[Any],
    X,
    y,
    *,
    sensitive_features=None,
    sample_weight=None,
    unlabelled=None,
    rows: Sequence[np.ndarray] | None = None,
    hopeless: Hopeless | None = None,
    on_epoch: OnEpoch | None = None,
) -> Sequence[Any]:
    """Fit several estimators of one architecture as one tensor program; the numbers are those of fitting each alone.

    They may differ in `random_state`, in the `stacked_settings` of their class (gamma, learning rate, ...) and in the
    rows they see: `rows` holds the row numbers of each estimator, for example folds; classes, groups and bins are those
    of all rows. The estimators are fitted in place and returned; if anything fails they stay as they were. `hopeless`
    is called after every epoch with its number and the histories so far; estimators whose places it returns stop
    there. `on_epoch` is called with (epochs done, epochs at most).
    """
    _check_alike(estimators)
    workers = [copy.copy(estimator) for estimator in estimators]
    first = workers[0]
    table = read_table(first, X, y, sensitive_features, sample_weight, unlabelled)
    parts = _check_rows(rows, len(estimators), table)
    replicas = []
    for worker, part in zip(workers, parts, strict=True):
        _describe(worker, first, table)
        worker.training_rows_, worker.has_unlabelled_ = table.seen(part), unlabelled is not None
        replicas.append(_replica(worker, table, part))
    with _progress(first.verbose, len(estimators), on_epoch or _WATCHER.get()) as report:
        _train(first, table, replicas, hopeless, report)
    for estimator, worker, replica in zip(estimators, workers, replicas, strict=True):
        worker.net_ = replica.net.eval().requires_grad_(False)
        worker.history_, worker.best_epoch_ = replica.history, replica.best_epoch
        worker.n_iter_ = replica.history[-1]["epoch"] + 1
        vars(estimator).clear()
        vars(estimator).update(vars(worker))
    return estimators


@contextlib.contextmanager
def watch_epochs(on_epoch: OnEpoch) -> Iterator[None]:
    """Call `on_epoch` after every epoch of the fits within, also of those inside meta-estimators.

    A fit that was given an `on_epoch` of its own calls that one alone.
    """
    token = _WATCHER.set(on_epoch)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def _check_alike(estimators: Sequence[Any]) -> None:
    if not estimators:
        raise InputError("There are no estimators to fit.", remedy="Pass at least one.")
    first = estimators[0]
    free = {"random_state", *first.stacked_settings}
    for estimator in estimators:
        check_settings(estimator)
        for field in dataclasses.fields(first):
            own, other = getattr(first, field.name), getattr(estimator, field.name, None)
            if type(estimator) is not type(first) or (field.name not in free and repr(own) != repr(other)):
                raise InputError(
                    f"{type(estimator).__name__} with {field.name}={other!r} cannot train in one stack with "
                    f"{type(first).__name__} with {field.name}={own!r}; one stack may differ only in {sorted(free)}."
                )


def _check_rows(rows: Any, count: int, table: Table) -> list[np.ndarray]:
    """Return the rows of the table that each estimator sees, all by default."""
    if rows is None:
        return [np.arange(len(table.y))] * count
    if len(rows) != count:
        raise InputError(f"rows has {len(rows)} entries for {count} estimators; pass one index array for each.")
    return [_check_part(np.asarray(part), i, table) for i, part in enumerate(rows)]


def _check_part(part: np.ndarray, i: int, table: Table) -> np.ndarray:
    if part.dtype == bool:
        part = np.flatnonzero(part)
    whole = part.ndim == 1 and len(part) and np.issubdtype(part.dtype, np.integer)
    if not whole or part.min() < 0 or part.max() >= table.n_source or len(np.unique(part)) < len(part):
        raise InputError(f"rows[{i}] must be distinct row numbers from 0 to {table.n_source - 1}, at least one.")
    own = np.flatnonzero(np.isin(table.source, part))
    labels = table.y[own]
    if len(np.unique(labels[labels >= 0])) < 2 or any(len(np.unique(column)) < 2 for column in table.s[own].T):
        raise InputError(f"rows[{i}] holds only one class or one group; every estimator must see at least two of each.")
    return own


def _describe(worker: Any, first: Any, table: Table) -> None:
    """Set what a fit knows before training; a stack shares one table."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(first, name):
            setattr(worker, name, getattr(first, name))
        elif hasattr(worker, name):
            delattr(worker, name)
    worker.input_shape_, worker.input_dtype_ = table.x.shape[1:], table.x.dtype.name
    worker.classes_ = table.classes
    worker.group_encoder_ = table.group_encoder
    worker.groups_ = [] if table.group_encoder is None else table.group_encoder.names_


def _replica(worker: Any, table: Table, own: np.ndarray) -> Replica:
    init, split, loop = (int(k) for k in np.random.SeedSequence(fit_seed(worker.random_state)).generate_state(3))
    generator = torch.Generator().manual_seed(split)
    strata = torch.from_numpy(number_cells(table.y[own], table.s[own]))
    train_rows, held = split_rows(strata, worker.training.validation_fraction, generator)
    if len(held) < MIN_VALIDATION_ROWS:
        train_rows = held = torch.arange(len(own))
    held = held[: worker.max_validation_rows]
    train_rows, held = (torch.from_numpy(own)[part] for part in (train_rows, held))
    with _BUILDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(init)
        inputs = table.x.shape[1] if table.x.ndim == 2 else table.x.shape[1:]
        net = worker.build(inputs, len(table.classes))
    seen = train_rows.numpy()
    worker.initialise(net, *(torch.from_numpy(a[seen]) for a in (table.y, table.s, table.weight)))
    net = net.to(worker.device)
    scalars = {name: float(getattr(worker, name)) for name in worker.stacked_settings}
    return Replica(net=net, rows=train_rows, validation=held, seed=loop, scalars=scalars)


def fit_seed(random_state: Any) -> int:
    """Return a seed: from the operating system for None, leaving numpy's global generator alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(check_random_state(random_state).randint(2**31))


def _train(
    first: Any, table: Table, replicas: list[Replica], hopeless: Hopeless | None, report: OnEpoch | None
) -> None:
    strata = number_cells(table.y, table.s) if first.stratify_by_label else number_cells(table.s)
    arrays = (table.x, table.y, table.s, table.weight, strata, number_cells(table.y, table.s))
    data = TrainingData(*(torch.from_numpy(a).to(first.device) for a in arrays))
    select = {"objective": lambda: None, "paper": lambda: _PaperSelection(table, replicas), "last": lambda: _later}
    opponent = None
    if first.opponent is not None:
        opponent = Opponent(part=first.opponent, loss=first.opponent_loss, steps=first.opponent_steps)
    plan = TrainingPlan(
        loss=first.loss,
        evaluate=first.evaluate,
        batch_size=first.batch_size,
        max_epochs=first.max_epochs,
        schedule=first.training,
        prepare=first.prepare,
        select=select[first.training.selection](),
        opponent=opponent,
        balanced_rows=first.balanced_rows,
    )
    give_up = None if hopeless is None else lambda epoch: hopeless(epoch, [r.history for r in replicas])
    train(replicas, data, plan, hopeless=give_up, on_epoch=report)


def number_cells(*columns: np.ndarray) -> np.ndarray:
    """Return a number for each distinct combination of columns, (n,) or (n, k) each.

    >>> number_cells(np.array([0, 0, 1, 1]), np.array([5, 7, 5, 5]))
    array([0, 1, 2, 2])
    """
    stacked = np.column_stack([*columns, np.zeros(len(columns[0]), np.int64)])
    return np.unique(stacked, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


def _later(replica: Replica, _: Any) -> float:
    """Prefer every epoch to those before it."""
    return -float(len(replica.history))


class _PaperSelection:
    """The paper's AUC + (1 - GPA) + (1 - AUDC) on the validation rows, negated because the loop minimises."""

    def __init__(self, table: Table, replicas: list[Replica]):
        self.table = table
        for replica in replicas:
            self._check(replica.validation.numpy())

    def _check(self, rows: np.ndarray) -> None:
        rows = rows[self.table.y[rows] >= 0]
        cells = [number_cells(self.table.y[rows], column) for column in self.table.s[rows].T]
        n_classes = len(self.table.classes)
        complete = all(len(np.unique(c)) >= 2 * n_classes for c in cells)
        if len(np.unique(self.table.y[rows])) < n_classes or not complete:
            raise InputError(
                f"selection='paper' needs rows of every class, in two groups or more, among the {len(rows)} validation "
                "rows.",
                remedy="Raise validation_fraction, or use selection='objective'.",
            )

    def __call__(self, replica: Replica, probabilities: torch.Tensor) -> float:
        rows = replica.validation.numpy()
        known = self.table.y[rows] >= 0
        rows, shown = rows[known], probabilities.cpu().numpy()[known]
        scores = prediction_scores(shown, np.arange(len(self.table.classes)), self.table.y[rows], self.table.s[rows])
        return -paper_objective(scores)


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
