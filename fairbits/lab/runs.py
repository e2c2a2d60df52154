"""What a run does: from settings to the numbers of its record."""

import copy
import hashlib
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairbits import datasets
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError
from fairbits.estimators import FairCodeClassifier, fit_stack
from fairbits.estimators.codes import code_information, held_out_scores
from fairbits.estimators.fitting import stratified_folds
from fairbits.information import binary_entropy, group_entropy, joint_information, word_tables
from fairbits.lab import run_settings as settings
from fairbits.lab import tuning
from fairbits.metrics import auc, random_guess_distance
from fairbits.training import Schedule

ABOUT = ("about_x", "about_y", "about_s")  # what the information plane shows
DRAWS = 16  # of one person, beside one draw
Result = dict[str, Any]
Views = dict[str, Callable[[np.ndarray], np.ndarray]]


class Part(NamedTuple):
    """Rows of a dataset: columns as numbers, labels, group numbers (n, 1)."""

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray


def execute(run: Any, trials: Path) -> Result:
    """Return the numbers of a run, on its threads; `trials` is the folder where a search keeps its finished trials."""
    torch.set_num_threads(run.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search tries bad settings on purpose
        return EXECUTE[run.kind](run, trials)


def external_fold(dataset: str, fold: int, folds: int, seed: int) -> tuple[Part, Part]:
    """Return the training and the test rows of a fold; the encoder is fitted to the training rows."""
    data = getattr(datasets, f"load_{dataset}")()
    y, s = data.y.to_numpy(), np.unique(data.s, return_inverse=True)[1][:, None]
    train, test = stratified_folds(y, s, folds, seed)[fold]
    encoder = TableEncoder().fit(data.X.iloc[train])
    X_train, X_test = (np.asarray(encoder.transform(data.X.iloc[rows])) for rows in (train, test))
    return Part(X_train, y[train], s[train]), Part(X_test, y[test], s[test])


def seed_of(*names: Any) -> int:
    """Return a seed that depends on names alone.

    >>> seed_of("compas", "BinaryMI", 0) == seed_of("compas", "BinaryMI", 0) != seed_of("compas", "BinaryMI", 1)
    True
    """
    return int.from_bytes(hashlib.sha256("/".join(map(str, names)).encode()).digest()[:4]) // 2


def estimator_of(method: settings.Method, **more: Any) -> Any:
    """Return the estimator of a method, with its fixed settings and more; one of your own is "module:Class"."""
    try:
        cls, settings = _estimator_class(method.estimator), {**method.settings, **more}
        schedule = {f.name: settings.pop(f.name) for f in fields(Schedule) if f.name in settings}
        if schedule:  # plans write its settings beside the others
            settings["schedule"] = replace(cls.own_schedule, **schedule)
        return cls(**settings)
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


def _reference(run: settings.Reference, trials: Path) -> Result:
    train, test = external_fold(run.dataset, run.fold, run.folds, run.seed)
    model = DummyClassifier() if run.name == "constant" else LogisticRegression(max_iter=2000)
    model.fit(train.X, train.y)
    views: Views = {"nothing": lambda X: X[:, :1] * 0} if run.name == "constant" else {"the columns": lambda X: X}
    seed = seed_of(run.dataset, run.name, run.fold, run.seed)
    return {
        "test": held_out_scores(model, *test),
        "representation": _representation(views, train, test, run.trees, seed),
    }


def _search(run: settings.Search, trials: Path) -> Result:
    train, test = external_fold(run.dataset, run.fold, run.folds, run.seed)
    seed = seed_of(run.dataset, run.name, run.fold, run.seed)
    tuned = tuning.TunedClassifier(
        estimator_of(run.method),
        objective=run.objective,
        space={name: _part(part) for name, part in run.method.space.items()},
        n_trials=run.trials,
        trials_at_once=run.trials_at_once,
        sampler=run.sampler,
        prune=run.prune,
        cv=run.inner_folds,
        records=trials / f"{run.trials_hash}.jsonl",
        random_state=seed,
    ).fit(train.X, train.y, sensitive_features=train.s)
    model, states = tuned.best_estimator_, list(tuned.trials_.state)
    return {
        "best": tuned.best_trial_.params,
        "inner": tuned.best_trial_.mean,
        "trials": {state: states.count(state) for state in ("complete", "pruned", "failed")},
        "test": held_out_scores(model, *test),
        "representation": _representation(representation_views(model, seed), train, test, run.trees, seed),
    }


def _part(part: Any) -> Any:
    if isinstance(part, settings.Range):
        return tuning.SearchRange(part.low, part.high, part.log)
    return tuning.Layers(part.depth, part.width) if isinstance(part, settings.Shape) else tuple(part)


def _representation(views: Views, train: Part, test: Part, trees: int, seed: int) -> Result:
    """Let a forest predict S from every view of the representation; the first view is what you would release."""
    found = {}
    for name, view in views.items():
        forest = RandomForestClassifier(trees, random_state=seed)
        forest.fit(view(train.X), train.s[:, 0])
        chances = forest.predict_proba(view(test.X))
        guess = forest.classes_[chances.argmax(1)]
        found[name] = {
            "adrg": random_guess_distance(test.s[:, 0], guess),
            "auc_of_s": auc(test.s[:, 0], chances),
        }
    return found


def representation_views(model: Any, seed: int) -> Views:
    """Return the forms in which the representation can be released: rows -> numbers."""
    if hasattr(model, "code_probabilities"):
        rng = np.random.default_rng(seed)

        def draws(X: np.ndarray, count: int) -> np.ndarray:
            theta = model.code_probabilities(X)
            return np.mean([rng.random(theta.shape) < theta for _ in range(count)], axis=0)

        return {
            "one draw": lambda X: draws(X, 1),
            f"{DRAWS} draws": lambda X: draws(X, DRAWS),
            "theta": model.code_probabilities,
        }
    if not hasattr(model, "representation"):
        return {"representation": model.transform}
    mean = copy.copy(model).set_params(representation="mean")
    return {"one draw": model.transform, "mean": mean.transform}


def _strengths(run: settings.Strengths, trials: Path) -> Result:
    """Fit all strengths of a fold as one stack."""
    scores = []
    for fold in range(run.folds):
        train, test = external_fold(run.dataset, fold, run.folds, run.fold_seed)
        seed = seed_of(run.dataset, run.name, fold, run.seed)
        models = [estimator_of(run.method, **{run.method.strength: v}, random_state=seed) for v in run.values]
        if isinstance(models[0], FairCodeClassifier):  # all limits share the estimates of p(y,s|x)
            encoder, models = models[0].pipeline()[0], [model.pipeline()[-1] for model in models]
            rows = encoder.fit_transform(train.X, train.y, sensitive_features=train.s)
            train, test = train._replace(X=rows), test._replace(X=encoder.transform(test.X))
            fit_stack(models, train.X, train.y, sensitive_features=train.s)
        elif hasattr(models[0], "stacked_settings"):
            width = models[0].hidden_sizes[0]
            for model in models:
                schedule = replace(model.training, selection=run.selection)
                model.set_params(hidden_sizes=(width,) * run.depth, schedule=schedule)
            fit_stack(models, train.X, train.y, sensitive_features=train.s)
        else:
            for model in models:
                model.fit(train.X, train.y, sensitive_features=train.s)
        for value, model in zip(run.values, models, strict=True):
            scores.append({"strength": value, "fold": fold, **held_out_scores(model, *test)})
    return {"scores": scores}


def _plane(run: settings.Plane, trials: Path) -> Result:
    """Fit one code; return its exact information about the validation rows' x, y and s after every epoch, in bits."""
    data = getattr(datasets, f"load_{run.dataset}")()
    fixed = {"gamma": run.gamma, "max_epochs": run.epochs, "patience": run.epochs, "selection": "last"}
    model = estimator_of(run.method, **fixed, random_state=seed_of(run.dataset, run.name, run.seed))
    X = np.asarray(TableEncoder().fit_transform(data.X))
    epochs = information_plane(model, X, data.y.to_numpy(), sensitive_features=data.s)
    return {"epochs": [{name: epoch[name] for name in ABOUT} for epoch in epochs]}


def _images(run: settings.Images, trials: Path) -> Result:
    """Fit one model to coloured digits; score it on digits whose colour is random."""
    (X, y, s), test = coloured_digits(run)
    model = estimator_of(run.method, max_epochs=run.epochs, random_state=run.seed)
    model.fit(X, y, sensitive_features=s)
    found = {"accuracy": float(np.mean(model.predict(test.X) == test.y))}
    if hasattr(model, "decode"):
        theta, permuted = model.code_probabilities(test.X), np.random.default_rng(run.seed).permutation(test.s)
        codes = np.random.default_rng(run.seed).random(theta.shape) < theta
        found["one_draw_accuracy"] = float(np.mean(model.classes_[model.decode(codes).argmax(1)] == test.y))
        found["information"] = code_information(theta, test.s)
        found["permuted_information"] = code_information(theta, permuted)
    return found


def coloured_digits(run: settings.Images) -> tuple[Part, Part]:
    """Return the images to fit, whose colour goes with the digit, and those to score, whose colour is random."""
    train = datasets.biased_mnist(run.rho, "train", random_state=run.seed)
    if not run.held_out:
        test = datasets.biased_mnist(0.1, "test")
        return Part(train.X, train.y, train.s[:, None]), Part(test.X, test.y, test.s[:, None])
    recoloured = datasets.biased_mnist(0.1, "train", random_state=run.seed)  # the same images in the same order
    kept = len(train) - run.held_out
    held = Part(recoloured.X[kept:], recoloured.y[kept:], recoloured.s[kept:, None])
    return Part(train.X[:kept], train.y[:kept], train.s[:kept, None]), held


EXECUTE: dict[str, Callable[[Any, Path], Result]] = {
    "reference": _reference,
    "search": _search,
    "strengths": _strengths,
    "plane": _plane,
    "images": _images,
}


def information_plane(estimator: Any, X: Any, y: Any, *, sensitive_features: Any) -> list[dict[str, float]]:
    """Fit a copy of a method with a code; return what its code reveals on the validation rows, epoch by epoch, in bits.

    I(X;T) as `about_x`, I(T;Y) as `about_y` and I(T;S) as `about_s` (of several columns the most), exact for these
    rows, which are few: the last two err upwards. The copy measures all this after every epoch; the method itself does
    not, so that nobody else pays for it. At most 20 bits.

    Examples
    --------
    >>> from fairbits import BinaryMIClassifier, Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(400, random_state=0)
    >>> model = BinaryMIClassifier(code_size=3, max_epochs=2, schedule=Schedule(min_steps=50), random_state=0)
    >>> sorted(information_plane(model, data.X, data.y, sensitive_features=data.s)[-1])
    ['about_s', 'about_x', 'about_y', 'epoch']
    """
    method = type(estimator)

    def evaluate(self: Any, net: Any, batch: Any, scalars: Any) -> dict[str, Tensor]:
        theta, sizes = net.theta(batch.x), [len(self.classes_), *self.group_sizes]
        known = [batch.y, *batch.s.unbind(1)]
        about_y, *about_s = (
            joint_information(theta, groups, weights=batch.weight, n_groups=size)
            for groups, size in zip(known, sizes, strict=True)
        )
        measured = (_about_rows(theta, batch.weight), about_y, torch.stack(about_s).amax(0))
        return method.evaluate(self, net, batch, scalars) | dict(zip(ABOUT, measured, strict=True))

    watched = type(method.__name__, (method,), {"evaluate": evaluate})(**estimator.get_params())
    fit_stack([watched], X, y, sensitive_features=sensitive_features)
    names = {"epoch": "epoch"} | {name: f"validation_{name}" for name in ABOUT}
    return [{name: epoch[logged] for name, logged in names.items()} for epoch in watched.history_]


def _about_rows(theta: Tensor, weight: Tensor) -> Tensor:
    """Return I(X;T) = H(T) - H(T|X) of rows that are all different; without a table for every row."""
    theta, share = theta.double(), (weight / weight.sum()).double()
    (table,), _ = word_tables(theta, torch.zeros(len(share), dtype=torch.int64), weights=share, n_groups=1)
    return (group_entropy(table) - share @ binary_entropy(theta).sum(-1)).float()
