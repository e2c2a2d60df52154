"""fairlearn's ExponentiatedGradient, ThresholdOptimizer and AdversarialFairnessClassifier, and AIF360's LFR."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import accuracy_score
from torch import nn

from fairbits.errors import InputError
from fairbits.rivals.compared import ComparedClassifier, base_learner, both, one_draw, optional_import
from fairbits.settings import layer_sizes, setting


class ExponentiatedGradientClassifier(ComparedClassifier):
    """A random choice among classifiers that gives all groups nearly the same share of positive predictions.

    Fairlearn's `ExponentiatedGradient` under `DemographicParity` (Agarwal et al. 2018, "A reductions approach to fair
    classification"): the most accurate lottery of base learners, each fitted to relabelled and reweighted rows, such
    that every group's rate of positive predictions is within `difference_bound` of the rate of all.

    The constraint is on the *drawn* label: `predict` and `sampled_proba` draw a base learner for every row.
    `predict_proba` returns the chances of the draw; taking the likelier class may break the constraint. The chances
    take few different values, so their AUC is that of a few decisions, not of a score.

    Parameters
    ----------
    difference_bound : the strength: less is fairer; 1 constrains nothing
    estimator : the base learner, with `fit(X, y, sample_weight)`; by default a logistic regression
    max_iter : maximum number of fits of the base learner, apart from some for the linear programmes in between
    mixture : what `predict_proba` averages over the lottery: the base learners' "labels", which gives the chances of
        the drawn prediction; or their "probabilities", a finer score that nothing constrains

    The other parameters are those of `ComparedClassifier`.
    """

    difference_bound: float = setting(0.01, at_least=0, at_most=1)
    estimator: Any = None
    max_iter: int = setting(50, at_least=1, whole=True)
    mixture: str = setting("labels", one_of=("labels", "probabilities"))

    title: ClassVar[str] = "fairlearn's ExponentiatedGradient"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        reductions = optional_import("fairlearn.reductions")
        parity = reductions.DemographicParity(difference_bound=self.difference_bound)
        model = reductions.ExponentiatedGradient(base_learner(self.estimator, seed), parity, max_iter=self.max_iter)
        with warnings.catch_warnings():  # of pandas, about how fairlearn uses it
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"fairlearn\.")
            model.fit(x, y, sensitive_features=s)
        self.lottery_ = [(float(w), model.predictors_[i]) for i, w in model.weights_.items() if w > 0]

    def chance(self, x: np.ndarray) -> np.ndarray:
        return self._mean(x, self.mixture)

    def sampled_proba(self, X: Any) -> np.ndarray:
        """Return 1 for the class that a base learner drawn for each row predicts, and 0 for the other.  (n, 2)"""
        return one_draw(both(self._mean(self.read_rows(X), "labels")), self.random_state)

    def predict(self, X: Any) -> np.ndarray:
        """Draw the class of each row; with an int `random_state` every call draws the same."""
        drawn = self.sampled_proba(X).argmax(1)
        return self.classes_[drawn]

    def _mean(self, x: np.ndarray, mixture: str) -> np.ndarray:
        """Return the lottery's mean label, or probability of the second class.  (n,)"""
        values = [p.predict(x) if mixture == "labels" else second_class(p, x) for _, p in self.lottery_]
        weights = np.array([w for w, _ in self.lottery_])
        return weights @ np.array(values) / weights.sum()


def second_class(predictor: Any, x: np.ndarray) -> np.ndarray:
    """Return a predictor's probability of class 1, which it may never have seen.  (n,)"""
    return predictor.predict_proba(x) @ (predictor.classes_ == 1)


class ThresholdOptimizerClassifier(ComparedClassifier):
    """Separate thresholds for every group, which give all groups nearly the same share of positive predictions.

    Fairlearn's `ThresholdOptimizer` under demographic parity (Hardt, Price and Srebro 2016, "Equality of opportunity in
    supervised learning"): the base learner is fitted without regard to the groups. Then each group gets two thresholds
    on its scores and a chance to use either, chosen for accuracy with shares of positive predictions within `tol`.

    **It needs the group of every row it predicts**; our methods never do. Pass `sensitive_features` to `predict_proba`,
    `predict` and `score`. With tol 1 it differs from the base learner: it uses the groups to gain accuracy.

    The constraint is on the *drawn* label: `predict` and `sampled_proba` draw it, `predict_proba` returns the chances,
    which take at most three values in each group: their AUC is that of a decision, not of a score.

    Parameters
    ----------
    tol : the strength: less is fairer; 1 constrains nothing
    estimator : the base learner, with `predict_proba`; by default a logistic regression. It and the thresholds are
        fitted to the same rows, so one that overfits gets poor thresholds

    The other parameters are those of `ComparedClassifier`.
    """

    tol: float = setting(0.0, at_least=0, at_most=1)
    estimator: Any = None

    title: ClassVar[str] = "fairlearn's ThresholdOptimizer"
    groups_at_prediction: ClassVar[bool] = True

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        self.optimizer_ = optional_import("fairlearn.postprocessing").ThresholdOptimizer(
            estimator=base_learner(self.estimator, seed), predict_method="predict_proba", tol=self.tol
        )
        self.optimizer_.fit(x, y, sensitive_features=s)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the chance of each class of `classes_`, one row per row of X; needs the groups."""
        x = self.read_rows(X)
        if sensitive_features is None:
            problem = f"is not enough: {self.title} needs the group of every row that it predicts."
            raise InputError(problem, argument="sensitive_features", value=None)
        groups = self.group_encoder_.transform(sensitive_features, n_rows=len(x))[:, 0]
        scores = self.optimizer_.estimator_.predict_proba(x)[:, 1]
        chance = np.zeros(len(x))
        for group, rule in self.optimizer_.interpolated_thresholder_.interpolation_dict.items():
            own = groups == group
            chance[own] = rule.p0 * rule.operation0(scores[own]) + rule.p1 * rule.operation1(scores[own])
        return both(chance)

    def sampled_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return 1 for the class drawn for each row, and 0 for the other.  (n, 2)"""
        return one_draw(self.predict_proba(X, sensitive_features=sensitive_features), self.random_state)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Draw the class of each row; needs the groups. With an int `random_state` every call draws the same."""
        drawn = self.sampled_proba(X, sensitive_features=sensitive_features).argmax(1)
        return self.classes_[drawn]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of one draw for each row; needs the groups."""
        drawn = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, drawn, sample_weight=sample_weight))


FAIRLEARN_TYPES = {"alpha": float, "learning_rate": float, "epochs": int, "batch_size": int}  # the only ones it takes


class WholeSeeds(np.random.RandomState):
    """Random states whose `random` is a whole number.

    Fairlearn 0.15 seeds torch with int(random_state.random()), which is always 0; so `random_state` has no effect.
    """

    def random(self, size: Any = None) -> Any:
        return self.randint(2**31, size=size)


class FairlearnAdversarialClassifier(ComparedClassifier):
    """Hide the group from an adversary that looks for it in the predicted probability.

    Fairlearn's `AdversarialFairnessClassifier` under demographic parity, on torch (Zhang, Lemoine and Mitchell 2018,
    "Mitigating unwanted biases with adversarial learning"). The predictor follows g_y - proj(g_y on g_s) - alpha g_s,
    with g_y and g_s the gradients of its own loss and of the adversary's. Predictions need no S.

    In fairlearn 0.15 the projection is wrong for predictors with a hidden layer: it adds the products of all pairs of
    rows of two weight matrices, not of equal rows. Compare with a linear predictor (``hidden_sizes=()``) too, for
    which it is right, with weights and bias treated separately. Training is unstable: large alphas may reverse the
    predictions (AUC below 0.5).

    Parameters
    ----------
    alpha : the strength; 0 still has the projection
    hidden_sizes, adversary_sizes : widths of the predictor's and the adversary's hidden layers; () is a linear one
    learning_rate, epochs, batch_size : of both players' Adam; rows are shuffled at every epoch

    The other parameters are those of `ComparedClassifier`.
    """

    alpha: float = setting(1.0, at_least=0)
    hidden_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    adversary_sizes: tuple[int, ...] = setting((64,), check=layer_sizes)
    learning_rate: float = setting(1e-3, above=0)
    epochs: int = setting(100, at_least=1, whole=True)
    batch_size: int = setting(256, at_least=1, whole=True)

    title: ClassVar[str] = "fairlearn's AdversarialFairnessClassifier"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        model = optional_import("fairlearn.adversarial").AdversarialFairnessClassifier(
            backend="torch",
            predictor_model=dense(self.hidden_sizes, "relu"),
            adversary_model=dense(self.adversary_sizes, "leaky_relu"),  # if all ReLUs are dead, fairlearn returns NaN
            shuffle=True,
            random_state=WholeSeeds(seed),
            **{name: kind(getattr(self, name)) for name, kind in FAIRLEARN_TYPES.items()},
        )
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            try:
                model.fit(x, y, sensitive_features=s)
            except RuntimeError as error:  # torch rejects probabilities that are not numbers
                raise RuntimeError(f"{self.title} has diverged ({error}); lower alpha or learning_rate.") from error
        self.net_ = nn.Sequential(*model.backendEngine_.predictor_model.layers_)

    def chance(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.net_(torch.from_numpy(x).float())[:, 0].double().numpy()


def dense(widths: tuple[int, ...], activation: str) -> list[Any]:
    """Describe hidden layers to fairlearn.

    >>> dense((64, 8), "relu")
    [64, 'relu', 8, 'relu']
    """
    return [part for width in widths for part in (int(width), activation)]


class AIF360LFRClassifier(ComparedClassifier):
    """Learning fair representations (Zemel et al. 2013) as in AIF360: each row becomes a mixture of a few prototypes.

    This is `LearnedFairRepresentations` of `aif360.sklearn`, which computes gradients; the older `LFR` takes finite
    differences and stops after 5,000 evaluations, far too early on wide tables. Two groups only. Predictions need no S.

    Differs from Zemel et al., and from our `LFRClassifier`: memberships fall with the distance, not its square; columns
    have no weights; the terms are means over columns and prototypes, not sums; all rows at once, by L-BFGS.

    Parameters
    ----------
    fairness_weight : the strength: weight of the difference between the groups' mean memberships
    n_prototypes, reconstruct_weight, target_weight, max_iter : as in AIF360; at most so many steps of L-BFGS

    The other parameters are those of `ComparedClassifier`; the seed chooses where the prototypes start.
    """

    fairness_weight: float = setting(50.0, at_least=0)
    n_prototypes: int = setting(5, at_least=1, whole=True)
    reconstruct_weight: float = setting(0.01, at_least=0)
    target_weight: float = setting(1.0, at_least=0)
    max_iter: int = setting(1000, at_least=1, whole=True)

    title: ClassVar[str] = "AIF360's LFR"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        if len(names := self.groups_[0]) > 2:
            raise InputError(f"sensitive_features has {len(names)} groups, {names}; {self.title} takes two.")
        with without_root_warnings():
            methods = optional_import("aif360.sklearn.preprocessing")
        same = ("fairness_weight", "n_prototypes", "reconstruct_weight", "target_weight", "max_iter")
        settings = {name: getattr(self, name) for name in same}
        self.model_ = methods.LearnedFairRepresentations(prot_attr="group", random_state=seed, **settings)
        self.model_.fit(pd.DataFrame(x, index=pd.Index(s, name="group")), y)

    def chance(self, x: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(x)[:, 1]


@contextmanager
def without_root_warnings() -> Iterator[None]:
    """Keep AIF360's import from logging to the root logger that some of its own extras are not installed."""
    root, silent = logging.getLogger(), logging.NullHandler()  # without any handler, logging would install one
    root.addHandler(silent)
    root.disabled = True
    try:
        yield
    finally:
        root.disabled = False
        root.removeHandler(silent)
