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
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from fairbits.errors import InputError
from fairbits.estimators.inputs import Table, read_table, said_elsewhere
from fairbits.metrics.gaps import paper_objective, prediction_scores
from fairbits.settings import check_settings
from fairbits.training import Replica, TrainingData
from fairbits.training.batches import expected_draws

MIN_VALIDATION_ROWS = 10
OnEpoch = Callable[[int, int], None]
Hopeless = Callable[[int, list[list[dict[str, float]]]], Collection[int]]
_WATCHER: ContextVar[OnEpoch | None] = ContextVar("watcher", default=None)
_BUILDING = threading.Lock()  # networks initialise from torch's global generator, which is seeded for each


def fit_stack(
    estimators: Sequence[Any],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    unlabelled: Any = None,
    rows: Sequence[np.ndarray] | None = None,
    hopeless: Hopeless | None = None,
    on_epoch: OnEpoch | None = None,
    noise_apart: bool = False,
) -> Sequence[Any]:
    """Fit several estimators of one architecture as one tensor program; the numbers are those of fitting each alone.

    They may differ in `random_state`, in the `stacked_settings` of their class (gamma, learning rate, ...) and in the
    rows they see: `rows` holds the row numbers of each estimator, for example folds; classes, groups and bins are those
    of all rows. The estimators are fitted in place and returned; if anything fails they stay as they were. `hopeless`
    is called after every epoch with its number and the histories so far; estimators whose places it returns stop
    there. `on_epoch` is called with (epochs done, epochs at most). With `noise_apart` the network's draws have a
    generator of their own: methods that draw more or less, with the same `random_state`, see the same batches.
    """
    _check_alike(estimators)
    workers = [copy.copy(estimator) for estimator in estimators]
    first, replicas = workers[0], []
    table = read_table(first, X, y, sensitive_features, sample_weight, unlabelled)
    _check_augmentation(first.training, table.x.shape)
    shared = {name: value for name, value in vars(first).items() if name in ("n_features_in_", "feature_names_in_")}
    shared |= {"input_shape_": table.x.shape[1:], "input_dtype_": table.x.dtype.name, "classes_": table.classes}
    encoder = table.group_encoder
    shared |= {"group_encoder_": encoder, "groups_": [] if encoder is None else encoder.names_}
    parts, cells = list(_parts(rows, len(estimators), table)), number_cells(table.y, table.s)
    seen = {place: table.seen(part) for place, part in {id(part): part for part in parts}.items()}
    for worker, part in zip(workers, parts, strict=True):
        vars(worker).pop("feature_names_in_", None)  # of an earlier fit
        vars(worker).update(shared, training_rows_=seen[id(part)], has_unlabelled_=unlabelled is not None)
        replicas.append(_replica(worker, table, part, cells, noise_apart))
    with _progress(first.verbose, len(estimators), on_epoch or _WATCHER.get()) as report:
        give_up = None if hopeless is None else lambda epoch: hopeless(epoch, [r.history for r in replicas])
        how = {"select": _select(first, table, replicas), "hopeless": give_up, "on_epoch": report}
        strata = cells if getattr(first, "condition_on_label", False) else number_cells(table.s)
        arrays = (table.x, table.y, table.s, table.weight, strata, cells)
        data = TrainingData(*(torch.from_numpy(array).to(first.device) for array in arrays))
        first.train(replicas, data, **how)
    for estimator, worker, replica, part in zip(estimators, workers, replicas, parts, strict=True):
        worker.net_ = replica.net.eval().requires_grad_(False)
        worker.complete(*(torch.from_numpy(a[part]) for a in (table.x, table.y, table.weight)))
        worker.history_, worker.best_epoch_ = replica.history, replica.best_epoch
        worker.n_iter_ = replica.history[-1]["epoch"] + 1
        estimator.__dict__ = vars(worker)
    return estimators


def fit_steps(steps: Sequence[Any], X: Any, y: Any, fit: Callable[..., Any], **data: Any) -> tuple[list, Any]:
    """Fit copies of encoders, then call `fit` with the rows as they encode them; return the encoders and these rows.

    Sensitive features and weights in `data` go to the encoders whose `fit` takes them, and to `fit`. Encoders that
    read the groups warn of them, and `fit` does not warn again.
    """
    fitted, told = [], False
    for name, step in steps:
        if isinstance(step, str):  # "passthrough" of scikit-learn
            continue
        known = [key for key, value in data.items() if value is not None and has_fit_parameter(step, key)]
        fitted.append((name, encoder := clone(step)))
        X = encoder.fit_transform(X, y, **{key: data[key] for key in known})
        told |= getattr(encoder, "group_encoder_", None) is not None
    with said_elsewhere() if told else contextlib.nullcontext():
        fit(X, y, **data)
    return fitted, X


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


def _check_augmentation(schedule: Any, shape: tuple[int, ...]) -> None:
    for name in ("affine", "recolour"):
        if getattr(schedule, name) and len(shape) != 4:
            problem = f"changes images (n, channels, height, width), but X has shape {shape}."
            raise InputError(problem, argument=name, value=getattr(schedule, name), remedy=f"Set {name}=0.")


def _parts(rows: Any, count: int, table: Table) -> Iterator[np.ndarray]:
    """Yield the rows of the table that each estimator sees, all by default."""
    if rows is None:
        yield from [np.arange(len(table.y))] * count
        return
    if len(rows) != count:
        raise InputError(f"rows has {len(rows)} entries for {count} estimators; pass one index array for each.")
    for i, part in enumerate(rows):
        part = np.flatnonzero(part) if np.asarray(part).dtype == bool else np.asarray(part)
        whole = part.ndim == 1 and len(part) and np.issubdtype(part.dtype, np.integer)
        if not whole or part.min() < 0 or part.max() >= len(table.hashes) or len(np.unique(part)) < len(part):
            raise InputError(f"rows[{i}] must be distinct row numbers from 0 to {len(table.hashes) - 1}, at least one.")
        own = np.flatnonzero(np.isin(table.source, part))
        labels = table.y[own]
        if len(np.unique(labels[labels >= 0])) < 2 or any(len(np.unique(column)) < 2 for column in table.s[own].T):
            problem = f"rows[{i}] holds only one class or one group; every estimator must see at least two of each."
            raise InputError(problem)
        yield own


def _replica(worker: Any, table: Table, own: np.ndarray, cells: np.ndarray, noise_apart: bool) -> Replica:
    """Split the rows of one estimator and build its network."""
    seeds = np.random.SeedSequence(fit_seed(worker.random_state)).generate_state(4)
    init, split, loop, noise = map(int, seeds)
    generator = torch.Generator().manual_seed(split)
    train_rows, held = split_rows(torch.from_numpy(cells[own]), worker.training.validation_fraction, generator)
    if len(held) < MIN_VALIDATION_ROWS:
        train_rows = held = torch.arange(len(own))
    held = held[: worker.max_validation_rows]
    train_rows, held = (torch.from_numpy(own)[part] for part in (train_rows, held))
    with _BUILDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(init)
        inputs = table.x.shape[1] if table.x.ndim == 2 else table.x.shape[1:]
        net = worker.build(inputs, len(table.classes))
    share, draws = worker.training.cell_share, torch.ones(len(cells))
    draws = expected_draws(torch.from_numpy(cells), train_rows, share) if share else draws
    y, s, weight = (torch.from_numpy(a[train_rows.numpy()]) for a in (table.y, table.s, table.weight))
    worker.initialise(net, y, s, weight * draws[train_rows])
    scalars = {name: float(getattr(worker, name)) for name in worker.stacked_settings}
    net = net.to(worker.device)
    replica = Replica(net=net, rows=train_rows, validation=held, seed=loop, draws=draws, scalars=scalars)
    replica.noise_seed = noise if noise_apart else None
    return replica


def split_rows(strata: torch.Tensor, fraction: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Split rows into (training, held-out), the held-out ones a systematic sample over the shuffled strata.

    >>> train, held = split_rows(torch.arange(100) % 2, 0.1, torch.Generator().manual_seed(0))
    >>> len(train), len(held), int((held % 2).sum())
    (90, 10, 5)
    """
    n = len(strata)
    n_held = round(fraction * n)
    shuffled = torch.randperm(n, generator=generator)
    by_stratum = shuffled[strata[shuffled].argsort(stable=True)]
    start = torch.rand(1, generator=generator)
    picked = torch.zeros(n, dtype=torch.bool)
    if n_held:
        spots = ((torch.arange(n_held) + start) * (n / n_held)).long()
        picked[spots.clamp(max=n - 1)] = True  # float32 may round the last one up
    held = by_stratum[picked]
    return by_stratum[~picked], held[torch.randperm(len(held), generator=generator)]


def fit_seed(random_state: Any) -> int:
    """Return a seed: from the operating system for None, leaving numpy's global generator alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(check_random_state(random_state).randint(2**31))


def number_cells(*columns: np.ndarray) -> np.ndarray:
    """Return a number for each distinct combination of columns, (n,) or (n, k) each.

    >>> number_cells(np.array([0, 0, 1, 1]), np.array([5, 7, 5, 5]))
    array([0, 1, 2, 2])
    """
    stacked = np.column_stack([*columns, np.zeros(len(columns[0]), np.int64)])
    return np.unique(stacked, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


def stratified_folds(y: np.ndarray, s: np.ndarray, n_folds: int, random_state: Any) -> list:
    """Return (training rows, test rows) of folds in which every (label, group) cell has its share."""
    cells = number_cells(np.unique(y, return_inverse=True)[1], s)
    sizes = np.bincount(cells)[cells]
    row = int(sizes.argmin())
    if sizes[row] < n_folds:
        raise InputError(
            f"{n_folds} folds need as many rows of every label in every group; the cell of row {row} has {sizes[row]} "
            f"(label {y[row]}). Use fewer folds, or merge groups or labels."
        )
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(cells, cells))


def _select(first: Any, table: Table, replicas: list[Replica]) -> Any:
    """Return what chooses the epoch, None for the smallest loss."""
    if first.training.selection != "paper":
        return (lambda replica, _: -float(len(replica.history))) if first.training.selection == "last" else None
    n_classes = len(table.classes)
    for replica in replicas:
        rows = replica.validation.numpy()
        rows = rows[table.y[rows] >= 0]
        cells = [number_cells(table.y[rows], column) for column in table.s[rows].T]
        if len(np.unique(table.y[rows])) < n_classes or any(len(np.unique(c)) < 2 * n_classes for c in cells):
            needed = f"needs rows of every class, in two groups or more, among the {len(rows)} validation rows."
            remedy = "Raise validation_fraction, or use selection='objective'."
            raise InputError(f"selection='paper' {needed}", remedy=remedy)

    def paper_loss(replica: Replica, probabilities: torch.Tensor) -> float:
        """Return the paper's AUC + (1 - GPA) + (1 - AUDC) on the validation rows, negated: the loop minimises."""
        rows = replica.validation.numpy()
        known = table.y[rows] >= 0
        rows, shown = rows[known], probabilities.cpu().numpy()[known]
        return -paper_objective(prediction_scores(shown, np.arange(n_classes), table.y[rows], table.s[rows]))

    return paper_loss


@contextlib.contextmanager
def _progress(verbose: bool, n: int, on_epoch: OnEpoch | None) -> Iterator[OnEpoch | None]:
    """Show a progress bar, if asked, beside calling `on_epoch`."""
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
