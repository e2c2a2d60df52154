"""What a forest finds in the representations of a model, of S and of the label."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier

from fairbits.estimators.base import softmax
from fairbits.lab.run_parts import Part, Result
from fairbits.metrics import auc, random_guess_distance

DRAWS = 16  # of one person, beside one draw
View = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows -> what is shown, the model's probabilities from it
Views = dict[str, View]


def representation_scores(views: Views, train: Part, test: Part, trees: int, seed: int) -> Result:
    """Let forests predict S and y from every view; the first view is what you would release.

    `model_auc` is the AUC of the model's own prediction from the very object that the forests read: from the same draw,
    or the expected prediction where they read its parameters.
    """
    found = {}
    for name, view in views.items():
        shown, _ = view(train.X)
        seen, probabilities = view(test.X)

        def forest(target: np.ndarray, shown: np.ndarray = shown, seen: np.ndarray = seen) -> tuple[Any, np.ndarray]:
            fitted = RandomForestClassifier(trees, random_state=seed).fit(shown, target)
            return fitted.classes_, fitted.predict_proba(seen)

        groups, chances = forest(train.s[:, 0])
        _, labels = forest(train.y)
        found[name] = {
            "adrg": random_guess_distance(test.s[:, 0], groups[chances.argmax(1)]),
            "auc_of_s": auc(test.s[:, 0], chances),
            "auc_of_y": auc(test.y, labels),
            "model_auc": auc(test.y, probabilities),
        }
    return found


def plain_view(model: Any, show: Callable[[np.ndarray], np.ndarray]) -> View:
    """Return the view of a model whose prediction is no function of chance."""
    return lambda X: (show(X), model.predict_proba(X))


def representation_views(model: Any, seed: int) -> Views:
    """Return the forms in which the representation can be released: rows -> numbers, and the prediction from them."""
    if hasattr(model, "code_probabilities"):
        rng = np.random.default_rng(seed)

        def drawn(count: int) -> View:
            def view(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                theta = model.code_probabilities(X)
                codes = [rng.random(theta.shape) < theta for _ in range(count)]
                return np.mean(codes, axis=0), np.mean([model.decode(c) for c in codes], axis=0)

            return view

        def of_theta(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return model.code_probabilities(X), expected_proba(model, X)

        return {"one draw": drawn(1), f"{DRAWS} draws": drawn(DRAWS), "theta": of_theta}
    if not hasattr(model, "representation"):
        return {"representation": plain_view(model, model.transform)}
    mean = copy.copy(model).set_params(representation="mean")

    def one_draw(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latent = model.transform(X)
        with torch.no_grad():
            return latent, softmax(model.net_.head(torch.from_numpy(latent).float())).double().numpy()

    return {"one draw": one_draw, "mean": plain_view(model, mean.transform)}


def expected_proba(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the expected prediction of a model with a code, also of one that predicts from one draw."""
    return copy.copy(model).set_params(prediction="expected").predict_proba(X)
