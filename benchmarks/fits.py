"""Fit and transform on Adult, against scikit-learn, fairlearn and AIF360 on the same encoded rows."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import torch
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
    """Compare a fit alone with everyone's, and a model of a stack with the adversaries of fairlearn."""
    epochs = size.epochs // 2
    kept = others(epochs)
    found = {name: model for name, (library, model) in kept.items() if find_spec(library)}
    ours = {method.__name__: method for method in (BinaryMIClassifier, AdversarialClassifier)}

    def stack(method: type) -> None:
        fit_stack([brief(method, epochs, seed) for seed in range(STACK)], X, y, sensitive_features=s)

    runs: dict[str, Callable] = {
        name: partial(model.fit, X, y, **({} if "scikit" in name else {"sensitive_features": s}))
        for name, model in found.items()
    }
    runs |= {name: partial(brief(method, epochs).fit, X, y, sensitive_features=s) for name, method in ours.items()}
    took = in_turns(runs, size.repeats // 2 + 1)
    shared = {own: STACK / in_turns({own: partial(stack, method)}, 1)[own][0] for own, method in ours.items()}
    lines = [line(f"{epochs} epochs of BinaryMIClassifier : {n}", took[n] / took["BinaryMIClassifier"]) for n in found]
    for (own, rate), name in product(shared.items(), (name for name in found if "adversary" in name)):
        target = {"at_least": 20.0} if own == "BinaryMIClassifier" and "default" in name else {}
        lines.append(line(f"{epochs} epochs of {own}, one of {STACK} in a stack : {name}", took[name] * rate, **target))
    return lines + [{"name": n, "missing": f"{kept[n][0]} is not installed"} for n in kept.keys() - found.keys()]


def transforms(X: np.ndarray, y: np.ndarray, s: np.ndarray, table: Any, size: Size) -> list[Line]:
    """Compare codes with a network's predictions, and encoding with scikit-learn's."""
    known, theirs = {"sensitive_features": s}, partial(network(1).fit(X, y).predict, X)
    hard = brief(ExactCodeClassifier, 1).set_params(code_size=8).fit(X, y, **known)
    random = brief(BinaryMIClassifier, 1).fit(X, y, **known).set_params(random_state=None)
    weight = np.ones((X.shape[1], 64), np.float32)
    encoder, columns = TableEncoder().fit(table), column_transformer().fit(table)
    pairs = {
        "hard code, 64-8 : scikit-learn's MLPClassifier.predict, 64-8": (partial(hard.transform, X), theirs),
        "random code, 64-8 : scikit-learn's MLPClassifier.predict, 64-8": (partial(random.transform, X), theirs),
        "torch's product of the rows with 64 units : numpy's, as in MLPClassifier": (
            partial(torch.matmul, torch.from_numpy(X), torch.from_numpy(weight)),
            partial(np.matmul, X, weight),
        ),
        "TableEncoder.transform : scikit-learn's ColumnTransformer": (
            partial(encoder.transform, table),
            partial(columns.transform, table),
        ),
    }
    lines = []
    for name, (own, other) in pairs.items():
        took = in_turns({"ours": own, "theirs": other}, 3 * size.repeats)
        lines.append(line(name, took["theirs"] / took["ours"], **({"at_least": 1.0} if ".predict" in name else {})))
    return lines


def column_transformer() -> Any:
    """Return what scikit-learn has for mixed tables: standardised numbers, a column for every level."""
    numbers = (StandardScaler(), make_column_selector(dtype_include="number"))
    texts = (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), make_column_selector(dtype_exclude="number"))
    return make_column_transformer(numbers, texts)


def run(size: Size) -> list[Line]:
    """Return the ratios with their targets."""
    adult = load_adult()
    table, y, s = (part.iloc[: size.rows] for part in (adult.X, adult.y, adult.s))
    X = np.asarray(TableEncoder().fit_transform(table))
    arrays = X, y.to_numpy(), s.to_numpy()
    return [*fits(*arrays, size), *transforms(*arrays, table, size)]
