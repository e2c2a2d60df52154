"""What a run does: from settings to the numbers of its record."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairbits import datasets
from fairbits.encoding import TableEncoder
from fairbits.estimators import FairCodeClassifier, fit_stack
from fairbits.estimators.codes import code_information
from fairbits.information import binary_entropy, group_entropy, joint_information, word_tables
from fairbits.lab import run_settings as settings
from fairbits.lab import tuning
from fairbits.lab.arena import compete
from fairbits.lab.domains import adapt
from fairbits.lab.representations import plain_view, representation_scores, representation_views
from fairbits.lab.run_parts import (
    Part,
    Result,
    common_seed,
    estimator_of,
    external_fold,
    scores_of,
    seed_of,
    with_groups,
)
from fairbits.lab.tuning.search_space import settings_of

ABOUT = ("about_x", "about_y", "about_s")  # what the information plane shows
PLANE_ROWS = 1000  # digits it is measured on


def execute(run: Any, trials: Path) -> Result:
    """Return the numbers of a run, on its threads; `trials` is the folder where a search keeps its finished trials."""
    torch.set_num_threads(run.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search tries bad settings on purpose
        return EXECUTE[run.kind](run, trials)


def _reference(run: settings.Reference, trials: Path) -> Result:
    train, test = external_fold(run.dataset, run.fold, run.folds, run.seed)
    model = DummyClassifier() if run.name == "constant" else LogisticRegression(max_iter=2000)
    model.fit(train.X, train.y)
    nothing, columns = plain_view(model, lambda X: X[:, :1] * 0), plain_view(model, lambda X: X)
    views = {"nothing": nothing} if run.name == "constant" else {"the columns": columns}
    seed = seed_of(run.dataset, run.name, run.fold, run.seed)
    return {
        "test": scores_of(model, test),
        "representation": representation_scores(views, train, test, run.trees, seed),
    }


def _search(run: settings.Search, trials: Path) -> Result:
    train, test = with_groups(run.method, *external_fold(run.dataset, run.fold, run.folds, run.seed))
    names = (run.dataset,) if run.common else (run.dataset, run.name)
    seed = seed_of(*names, run.fold, run.seed)
    tuned = tuning.TunedClassifier(
        estimator_of(run.method),
        objective=run.objective,
        leakage=run.leakage,
        max_leakage=run.max_leakage,
        mixed=run.mixed,
        halving=run.halving,
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
        "test": scores_of(model, test),
        "representation": representation_scores(representation_views(model, seed), train, test, run.trees, seed),
    }


def _part(part: Any) -> Any:
    if isinstance(part, settings.Range):
        return tuning.SearchRange(part.low, part.high, part.log)
    return tuning.Layers(part.depth, part.width) if isinstance(part, settings.Shape) else tuple(part)


def _refit(run: settings.Refit, trials: Path) -> Result:
    """Fit the known settings once, score them, and let forests look at the representation."""
    parts = external_fold(run.dataset, run.fold, run.folds, run.fold_seed)
    train, test = with_groups(run.method, *parts)
    seed = common_seed(run, run.fold)
    model = estimator_of(run.method, random_state=seed).set_params(**settings_of(run.settings))
    fit_stack([model], train.X, train.y, sensitive_features=train.s, noise_apart=True)
    found = {"test": scores_of(model, test)}
    if run.trees:
        views = representation_views(model, seed)
        found["representation"] = representation_scores(views, train, test, run.trees, seed)
    return found


def _strengths(run: settings.Strengths, trials: Path) -> Result:
    """Fit all strengths of a fold as one stack."""
    scores = []
    for fold in range(run.folds):
        train, test = with_groups(run.method, *external_fold(run.dataset, fold, run.folds, run.fold_seed))
        seed = common_seed(run, fold) if run.common else seed_of(run.dataset, run.name, fold, run.seed)
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
            fit_stack(models, train.X, train.y, sensitive_features=train.s, noise_apart=run.common)
        else:
            for model in models:
                model.fit(train.X, train.y, sensitive_features=train.s)
        for value, model in zip(run.values, models, strict=True):
            scores.append({"strength": value, "fold": fold, **scores_of(model, test)})
    return {"scores": scores}


def _plane(run: settings.Plane, trials: Path) -> Result:
    """Fit one code; return its exact information about other rows' x, y and s after every epoch, in bits."""
    seed = seed_of(run.dataset, run.seed) if run.common else seed_of(run.dataset, run.name, run.seed)
    fixed = {"gamma": run.gamma, "max_epochs": run.epochs, "patience": run.epochs, "selection": "last"}
    model = estimator_of(run.method, **fixed, random_state=seed)
    if run.dataset == "biased-mnist":
        (X, y, s), others = coloured_digits(run.rho, run.seed, held_out=PLANE_ROWS)
    else:
        data, others = getattr(datasets, f"load_{run.dataset}")(), None
        X, y, s = np.asarray(TableEncoder().fit_transform(data.X)), data.y.to_numpy(), data.s
    epochs = information_plane(model, X, y, sensitive_features=s, others=others)
    return {"epochs": [{name: epoch[name] for name in ABOUT} for epoch in epochs]}


def _images(run: settings.Images, trials: Path) -> Result:
    """Fit one model to coloured digits; score it on digits whose colour is random."""
    (X, y, s), test = coloured_digits(run.rho, run.seed, held_out=run.held_out)
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


def coloured_digits(rho: float, seed: int, *, held_out: int = 0) -> tuple[Part, Part]:
    """Return the images to fit, whose colour goes with the digit, and those to score, whose colour is random."""
    train = datasets.biased_mnist(rho, "train", random_state=seed)
    if not held_out:
        test = datasets.biased_mnist(0.1, "test")
        return Part(train.X, train.y, train.s[:, None]), Part(test.X, test.y, test.s[:, None])
    recoloured = datasets.biased_mnist(0.1, "train", random_state=seed)  # the same images in the same order
    kept = len(train) - held_out
    held = Part(recoloured.X[kept:], recoloured.y[kept:], recoloured.s[kept:, None])
    return Part(train.X[:kept], train.y[:kept], train.s[:kept, None]), held


EXECUTE: dict[str, Callable[[Any, Path], Result]] = {
    "reference": _reference,
    "search": _search,
    "refit": _refit,
    "strengths": _strengths,
    "plane": _plane,
    "images": _images,
    "domain": lambda run, trials: adapt(run),
    "arena": lambda run, trials: compete(run),
}


def information_plane(
    estimator: Any, X: Any, y: Any, *, sensitive_features: Any, others: Part | None = None
) -> list[dict[str, float]]:
    """Fit a copy of a method with a code; return what its code reveals of rows, epoch by epoch, in bits.

    The rows are `others`, with classes and groups as whole numbers from 0, or else the validation rows.

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
    fixed = others and [torch.as_tensor(values) for values in (*others, np.ones(len(others.y), np.float32))]

    def evaluate(self: Any, net: Any, batch: Any, scalars: Any) -> dict[str, Tensor]:
        x, y, s, weight = fixed or (batch.x, batch.y, batch.s, batch.weight)
        theta, sizes = net.theta(x), [len(self.classes_), *self.group_sizes]
        about_y, *about_s = (
            joint_information(theta, groups, weights=weight, n_groups=size)
            for groups, size in zip([y, *s.unbind(1)], sizes, strict=True)
        )
        measured = (_about_rows(theta, weight), about_y, torch.stack(about_s).amax(0))
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
