"""Fit and transform on Adult, against scikit-learn, fairlearn and AIF360 on the same encoded rows."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.ratios import Line, Size, in_turns, line
from fairbits import AdversarialClassifier, BinaryMIClassifier, ExactCodeClassifier, Schedule, TableEncoder, rivals
from fairbits.datasets import load_adult
from fairbits.estimators import fit_stack

STACK = 64
BATCH = 256
FAIRLEARN_BATCH = 32  # its default


def brief(method: type, epochs: int, seed: int = 0) -> Any:
    """Return a method that trains for so many epochs."""
    return method(max_epochs=epochs, schedule=Schedule(min_steps=0, patience=epochs), random_state=seed)


def network(epochs: int) -> MLPClassifier:
    """Return scikit-learn's network with the layers and batches of our default code."""
    return MLPClassifier((64, 8), batch_size=BATCH, max_iter=epochs, random_state=0)


def others(epochs: int) -> dict[str, tuple[str, Any]]:
    """Return what a fit is compared with: title, library, estimator."""
    adversary = partial(rivals.FairlearnAdversarialClassifier, epochs=epochs, random_state=0)
    return {
        "scikit-learn's MLPClassifier 64-8": ("sklearn", network(epochs)),
        "scikit-learn's HistGradientBoosting, defaults": ("sklearn", HistGradientBoostingClassifier(random_state=0)),
        f"fairlearn's adversary, batch {FAIRLEARN_BATCH} (its default)": (
            "fairlearn",
            adversary(batch_size=FAIRLEARN_BATCH),
        ),
        f"fairlearn's adversary, batch {BATCH}": (
            "fairlearn",
            adversary(batch_size=BATCH),
        ),
        "fairlearn's ExponentiatedGradient, logistic": ("fairlearn", rivals.ExponentiatedGradientClassifier()),
        "AIF360's LFR, defaults": ("aif360", rivals.AIF360LFRClassifier(random_state=0)),
    }


def fits(X: np.ndarray, y: np.ndarray, s: np.ndarray, size: Size) -> list[Line]:
    """Compare a fit alone with everyone's, and with the adversaries also a model of a stack."""
    epochs = size.epochs // 2
    kept = others(epochs)
    found = {name: model for name, (library, model) in kept.items() if find_spec(library)}
    ours = {method.__name__: method for method in (BinaryMIClassifier, AdversarialClassifier)}

    def stack(method: type) -> None:
        fit_stack([brief(method, epochs, seed) for seed in range(STACK)], X, y, sensitive_features=s)

    runs: dict[str, Callable] = {
        name: lambda m=model, n=name: m.fit(X, y, **({} if n.startswith("scikit") else {"sensitive_features": s}))
        for name, model in found.items()
    }
    runs |= {name: lambda m=method: brief(m, epochs).fit(X, y, sensitive_features=s) for name, method in ours.items()}
    took = in_turns(runs, size.repeats // 2 + 1)
    stacks = in_turns({name: partial(stack, method) for name, method in ours.items()}, 1)
    alone = {
        f"{epochs} epochs of BinaryMIClassifier : {name}": took[name] / took["BinaryMIClassifier"] for name in found
    }
    shared = {
        f"{epochs} epochs of {own}, one of a stack of {STACK} : {name}": STACK * took[name] / np.median(stacks[own])
        for own in ours
        for name in found
        if "adversary" in name
    }
    target = f"BinaryMIClassifier, one of a stack of {STACK} : fairlearn's"
    lines = [
        line(name, ratios, **({"at_least": 20.0} if target in name and f"batch {FAIRLEARN_BATCH}" in name else {}))
        for name, ratios in (alone | shared).items()
    ]
    return lines + [
        {"name": name, "missing": f"{kept[name][0]} is not installed"} for name in kept.keys() - found.keys()
    ]


def transforms(X: np.ndarray, y: np.ndarray, s: np.ndarray, table: Any, size: Size) -> list[Line]:
    """Compare codes with a network's predictions, and encoding with scikit-learn's."""
    known, theirs = {"sensitive_features": s}, network(1).fit(X, y).predict
    hard = brief(ExactCodeClassifier, 1).set_params(code_size=8).fit(X, y, **known)
    random = brief(BinaryMIClassifier, 1).fit(X, y, **known).set_params(random_state=None)
    numbers = (StandardScaler(), make_column_selector(dtype_include="number"))
    texts = (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), make_column_selector(dtype_exclude="number"))
    encoder, columns = TableEncoder().fit(table), make_column_transformer(numbers, texts).fit(table)
    pairs = {
        "hard code, 64-8 : scikit-learn's MLPClassifier.predict, 64-8": (hard.transform, theirs, X),
        "random code, 64-8 : scikit-learn's MLPClassifier.predict, 64-8": (random.transform, theirs, X),
        "TableEncoder.transform : scikit-learn's ColumnTransformer": (encoder.transform, columns.transform, table),
    }
    lines = []
    for name, (own, other, rows) in pairs.items():
        took = in_turns({"ours": partial(own, rows), "theirs": partial(other, rows)}, 3 * size.repeats)
        lines.append(line(name, took["theirs"] / took["ours"], **({"at_least": 1.0} if "MLP" in name else {})))
    return lines


def run(size: Size) -> list[Line]:
    """Return the ratios with their targets."""
    adult = load_adult()
    table, y, s = (part.iloc[: size.rows] for part in (adult.X, adult.y, adult.s))
    X = np.asarray(TableEncoder().fit_transform(table))
    arrays = X, y.to_numpy(), s.to_numpy()
    return [*fits(*arrays, size), *transforms(*arrays, table, size)]
