"""Domain adaptation: a source with labels and a target without them, with the domain as what is to be hidden."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairbits import datasets
from fairbits.encoding import TableEncoder
from fairbits.estimators import fit_stack
from fairbits.estimators.fitting import stratified_folds
from fairbits.lab import run_settings as settings
from fairbits.lab.run_parts import Result, estimator_of, seed_of
from fairbits.metrics import auc

SOURCE_RHO, RANDOM_RHO = 0.95, 0.1  # how often a digit has its own colour in the source, and by chance
OLD = 40  # years; from here on people are the target
UNLABELLED = -1


class Domains(NamedTuple):
    """Rows of both domains, 0 the source and 1 the target."""

    X: np.ndarray
    y: np.ndarray
    domain: np.ndarray


def biased_source_digits(seed: int) -> tuple[Domains, Domains]:
    """Return training and test digits: coloured by their label in the source, at random in the target.

    Both have the same colours, so hiding the domain need not keep a model from reading the label off them.
    """
    return _digits(seed, SOURCE_RHO, lambda colour, domain: np.full(len(colour), True))


def other_colours_digits(seed: int) -> tuple[Domains, Domains]:
    """Return training and test digits in random colours: five in the source, the other five in the target."""
    return _digits(seed, RANDOM_RHO, lambda colour, domain: (colour >= 5) == (domain == 1))


def _digits(seed: int, rho: float, kept: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[Domains, Domains]:
    """Return digits of a source at rho and a target at random, in some colours; no image is in both domains."""
    parts = []
    for split in ("train", "test"):
        source, target = (datasets.biased_digits(r, split, random_state=seed) for r in (rho, RANDOM_RHO))
        half = len(source.y) // 2  # both have the same images in the same order
        X, y, s = (np.concatenate([getattr(source, n)[:half], getattr(target, n)[half:]]) for n in ("X", "y", "s"))
        domain = np.repeat([0, 1], [half, len(y) - half])
        rows = kept(s, domain)
        parts.append(Domains(X[rows], y[rows], domain[rows]))
    return parts[0], parts[1]


def adult_by_age(seed: int) -> tuple[Domains, Domains]:
    """Return training and test rows of Adult without the age: people under 40 are the source, the others the target."""
    data = datasets.load_adult()
    y, domain = data.y.to_numpy(), (data.X["age"] >= OLD).to_numpy().astype(int)
    X = data.X.drop(columns="age")
    train, test = stratified_folds(y, domain[:, None], 3, seed)[0]
    encoder = TableEncoder().fit(X.iloc[train])
    rows = (Domains(np.asarray(encoder.transform(X.iloc[part])), y[part], domain[part]) for part in (train, test))
    return next(rows), next(rows)


EXPERIMENTS = {"biased digits": biased_source_digits, "other colours": other_colours_digits, "adult": adult_by_age}


def adapt(run: settings.Domain) -> Result:
    """Fit a method over its strengths, without the target's labels, or with these alone; score it on both domains."""
    train, test = EXPERIMENTS[run.experiment](run.seed)
    hidden = int(run.labels == "source")  # the domain whose labels are not shown
    labels = np.where(train.domain == hidden, UNLABELLED, train.y)
    more: dict[str, Any] = {"random_state": seed_of(run.experiment, run.seed), "max_epochs": run.epochs}
    strengths = [{run.method.strength: value} for value in run.values] or [{}]
    models = [estimator_of(run.method, **more, **strength) for strength in strengths]
    given: dict[str, Any] = {"sensitive_features": train.domain, "unlabelled": UNLABELLED, "noise_apart": True}
    fit_stack(models, train.X, labels, **given)
    values: list[float | None] = [*run.values] or [None]
    found = zip(values, models, strict=True)
    return {"scores": [{"strength": value, **domain_scores(model, test)} for value, model in found]}


def domain_scores(model: Any, test: Domains) -> dict[str, float]:
    """Return accuracy and AUC on the test rows of each domain."""
    found = {}
    for number, name in enumerate(("source", "target")):
        rows = test.domain == number
        chances, y = model.predict_proba(test.X[rows]), test.y[rows]
        found[f"{name}_accuracy"] = float(np.mean(model.classes_[chances.argmax(1)] == y))
        found[f"{name}_auc"] = auc(y, chances)
    return found
