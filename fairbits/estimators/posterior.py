"""Estimates of p(y, s | x): all that a code of x needs to know about a row."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter

from fairbits.encoding import GroupEncoder, TableEncoder, take_rows
from fairbits.encoding.columns import as_frame
from fairbits.errors import InputError
from fairbits.estimators.fitting import number_cells
from fairbits.estimators.inputs import (
    canonical_order,
    new_group_encoder,
    read_labels,
    read_weights,
    warn_of_sensitive,
)

BOOSTED_ROWS = 1_500  # with fewer, boosted trees add more noise than they see
SMALLEST = 1e-6  # probability, before its logarithm is taken


class Learner(NamedTuple):
    """A classifier and the form in which it sees the rows: as "numbers", as "levels" for trees, or as they are."""

    name: str
    classifier: Any
    sees: str = "rows"


class PosteriorEncoder(TransformerMixin, BaseEstimator):
    """Turn each row into estimates of p(y|x), and of p(s|x,y) for every label y, as log-ratios.

    Whatever a code of x can reveal about the label and the groups, a code of p(y,s|x) = p(y|x) p(s|x,y) can, too. So a
    code should look at the best estimate there is. `fit_transform` returns estimates by models that have not seen the
    row, `transform` those of models fitted to all rows. What is certified about a code never depends on them. The order
    of the rows does not matter, and a row of weight 0 counts as absent. A row of weight 3 is one row that counts three
    times, all in one fold; three copies of it are three people, in folds of their own. So their estimates differ, and
    the models of `transform` do not (weights that are no whole numbers reach classifiers that take `sample_weight`).

    Parameters
    ----------
    estimators : "default" is logistic regression and, from 1,500 rows, boosted trees. Or one or several classifiers
        with `predict_proba`: they get X as you pass it, and learn the label, and each group from X and the label. A
        `FrozenEstimator` holds a fitted classifier of the label, which must not have seen these rows
    cv : folds, stratified by label and groups; a combination of fewer rows joins the largest one there. It still has an
        estimate, because one model of a column's groups serves all labels
    columns : whether the encoded columns of X stand beside the estimates, to correct them where they err
    encode_sensitive : let the models see the groups, and put these beside the estimates: p(y|x,s) and s take the place
        of p(y|x) and p(s|x,y). `transform` then needs `sensitive_features`
    groups : "intersection" of several sensitive columns: one model of their crossings, which need 10 rows each. With
        "each", one model per column, given the label. Or a `GroupEncoder`, which sets that number, too
    random_state : seed of the folds

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, s = rng.normal(size=(200, 3)), rng.choice(["a", "b"], 200)
    >>> encoder = PosteriorEncoder(columns=False).fit(X, X[:, 0] > 0, sensitive_features=s)
    >>> encoder.get_feature_names_out().tolist()
    ['linear: True', 'linear: b if False', 'linear: b if True']
    """

    def __init__(
        self,
        estimators: Any = "default",
        *,
        cv: int = 5,
        columns: bool = True,
        encode_sensitive: bool = False,
        groups: str | GroupEncoder = "intersection",
        random_state: Any = 0,
    ):
        self.estimators, self.cv, self.columns = estimators, cv, columns
        self.encode_sensitive, self.groups, self.random_state = encode_sensitive, groups, random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the models to all rows, and the scales of the estimates to those of models that have not seen them."""
        self.fit_transform(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the estimates of these rows by models that have not seen them.  (n, features) float32

        Without sensitive features it estimates the label alone.
        """
        labels, X = read_labels(self, y), _rows(X)
        if len(labels) != len(X):
            raise InputError(f"y has {len(labels)} labels for {len(X)} rows.", remedy="Pass one per row.")
        if sensitive_features is not None and not self.encode_sensitive:
            warn_of_sensitive(X, sensitive_features, stacklevel=4)
        weight = np.ones(len(labels)) if sample_weight is None else read_weights(sample_weight, len(labels))
        used = np.flatnonzero(weight)
        rows, s = take_rows(X, used), take_rows(sensitive_features, used)
        targets, content = self._read(rows, labels[used], s)
        order = canonical_order(content, targets, weight[used])
        rows, s, targets, weight = (take_rows(part, order) for part in (rows, s, targets, weight[used]))
        estimates = self._cross_fitted(rows, s, targets, None if (weight == weight[0]).all() else weight)
        self.mean_ = np.average(estimates, axis=0, weights=weight)
        spread = np.sqrt(np.average((estimates - self.mean_) ** 2, axis=0, weights=weight))
        self.scale_ = np.maximum(spread, SMALLEST)
        every = np.empty((len(labels), estimates.shape[1]))
        every[used[order]] = estimates
        left_out = np.setdiff1d(np.arange(len(labels)), used)
        if len(left_out):  # the models have not seen these at all
            every[left_out] = self._estimates(take_rows(X, left_out), take_rows(sensitive_features, left_out))
        return self._beside_columns(every, X, sensitive_features)

    def _read(self, X: Any, labels: np.ndarray, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fit the encoders; return numbers of labels and groups (n, targets), and the rows as numbers, to order them.

        The encoders do not depend on the order of the rows.
        """
        self.classes_, number = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            found = f"y has only one class, {self.classes_.tolist()} (after dropping rows of weight 0)."
            raise InputError(found, remedy="A classifier needs rows of at least two classes.")
        known = {"sensitive_features": sensitive_features} if self.encode_sensitive else {}
        self.table_encoder_ = TableEncoder(encode_sensitive=self.encode_sensitive).fit(X, **known)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.table_encoder_, name):
                setattr(self, name, getattr(self.table_encoder_, name))
        content = self.table_encoder_.levels(X, **known)
        self.group_encoder_: Any = None
        if sensitive_features is None:
            return number[:, None], content
        self.group_encoder_ = new_group_encoder(self.groups).fit(sensitive_features, n_rows=len(number))
        return np.column_stack([number, self.group_encoder_.transform(sensitive_features)]), content

    def _cross_fitted(self, X: Any, s: Any, targets: np.ndarray, weight: Any) -> np.ndarray:
        """Fit all models; return the estimates of these rows by models that have not seen them.  (n, ratios)"""
        folds = self._folds(targets)
        targets = targets[:, :1] if self.encode_sensitive else targets  # a group that is known needs no estimate
        self.learners_, self.models_, out_of_fold = self._learners(len(targets)), [], []
        for learner in self.learners_:
            view = self._view(X, s, learner)
            models = self._models(learner, view, targets, weight, np.arange(len(targets)))
            held = self._log_ratios(learner, models, view)
            for train, test in () if isinstance(learner.classifier, FrozenEstimator) else folds:
                fold = self._models(learner, view, targets, weight, train)
                held[test] = self._log_ratios(learner, fold, take_rows(view, test))
            self.models_.append(models)
            out_of_fold.append(held)
        estimates = np.hstack(out_of_fold)
        self.blends_ = self._blends(estimates, targets, weight)
        return estimates

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the estimates of other rows; `encode_sensitive` needs their groups.  (n, features) float32"""
        check_is_fitted(self)
        X = _rows(X)
        return self._beside_columns(self._estimates(X, sensitive_features), X, sensitive_features)

    def _estimates(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the log-ratios by the models that were fitted to all rows.  (n, ratios)"""
        pairs = zip(self.learners_, self.models_, strict=True)
        return np.hstack([self._log_ratios(one, m, self._view(X, sensitive_features, one)) for one, m in pairs])

    def posterior(self, features: Any, *, column: int = 0) -> np.ndarray:
        """Return p(y,s|x) of rows, given what `fit_transform` or `transform` made of them.  (n, C, K)

        A logistic regression, fitted to the estimates of models that have not seen the rows, weighs the learners. So
        the posterior of what `fit_transform` returned is out of fold up to these few weights.

        Parameters
        ----------
        features : (n, features) as returned by this encoder
        column : which of several sensitive columns, where `groups` takes each on its own

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X, s = rng.normal(size=(200, 3)), rng.choice(["a", "b"], 200)
        >>> encoder = PosteriorEncoder(columns=False)
        >>> joint = encoder.posterior(encoder.fit_transform(X, X[:, 0] > 0, sensitive_features=s))
        >>> p_label, p_group = joint.sum(2), joint.sum(1)
        """
        _, *of_groups = self._ratios_of(features)
        if not of_groups:
            raise InputError("There is no estimate of the groups.", remedy=self._without_groups())
        label = self.label_probabilities(features)
        model, given = self.blends_[1 + column], of_groups[column]
        groups = [model.predict_proba(given[..., y]) for y in range(len(self.classes_))]  # (n, K) each
        return label[:, :, None] * np.stack(groups, 1)

    def label_probabilities(self, features: Any) -> np.ndarray:
        """Return p(y|x), with `encode_sensitive` p(y|x,s), of rows given as in `posterior`.  (n, C)"""
        return self.blends_[0].predict_proba(self._ratios_of(features)[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the estimates by learner, class or group, and label; then the encoded columns."""
        check_is_fitted(self)
        names = []
        for learner, models in zip(self.learners_, self.models_, strict=True):
            names += [f"{learner.name}: {label}" for label in self.classes_[1:]]
            groups = [group for column in self._estimated_groups(models[1:]) for group in column[1:]]
            names += [f"{learner.name}: {group} if {label}" for group in groups for label in self.classes_]
        encoder = self.table_encoder_
        names += list(encoder.get_feature_names_out()) if self.columns else encoder.indicator_names
        return np.array(names, dtype=object)

    def _learners(self, n_rows: int) -> list[Learner]:
        if isinstance(self.estimators, str) and self.estimators == "default":
            linear = Learner("linear", LogisticRegression(max_iter=1_000), "numbers")
            kinds = [feature.kind for feature in self.table_encoder_.features_ if feature is not None]
            kinds += ["category"] * len(self.table_encoder_.sensitive_names)
            categories = [place for place, kind in enumerate(kinds) if kind == "category"]
            trees = HistGradientBoostingClassifier(categorical_features=categories, early_stopping=False)
            return [linear, Learner("boosted", trees, "levels")] if n_rows >= BOOSTED_ROWS else [linear]
        if isinstance(self.estimators, str):
            problem = "must be 'default', a classifier, or a list of classifiers."
            raise InputError(problem, argument="estimators", value=self.estimators)
        several = self.estimators if isinstance(self.estimators, Sequence) else [self.estimators]
        for classifier in several:
            if not hasattr(classifier, "predict_proba"):
                raise InputError(
                    f"{classifier!r} has no predict_proba, so it cannot estimate probabilities.",
                    remedy="Wrap it in sklearn.calibration.CalibratedClassifierCV, or pass another classifier.",
                )
        return [Learner(f"{type(c).__name__}{i}", c) for i, c in enumerate(several)]

    def _view(self, X: Any, sensitive_features: Any, learner: Learner) -> Any:
        """Return the rows in the form that a learner sees, beside their groups where it may know them."""
        encoder = self.table_encoder_
        known = {"sensitive_features": sensitive_features} if self.encode_sensitive else {}
        if learner.sees in ("numbers", "levels"):
            return (encoder.transform if learner.sees == "numbers" else encoder.levels)(X, **known)
        if not self.encode_sensitive or isinstance(learner.classifier, FrozenEstimator):
            return X
        return _beside(X, encoder.sensitive_indicators(sensitive_features, len(X)), "group")

    def _folds(self, targets: np.ndarray) -> list[Any]:
        if not (isinstance(self.cv, Integral) and 2 <= self.cv <= len(targets)):
            problem = f"must be a whole number of folds from 2 to the number of rows, {len(targets)}."
            raise InputError(problem, argument="cv", value=self.cv)
        cells = number_cells(targets)
        sizes = np.bincount(cells)
        cells[sizes[cells] < self.cv] = sizes.argmax()
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.random_state)
        return list(folds.split(cells, cells))

    def _models(self, learner: Learner, view: Any, targets: np.ndarray, weight: Any, rows: np.ndarray) -> list[Any]:
        """Fit a classifier of the label, and for each sensitive column one of the group, which also sees the label."""
        if isinstance(learner.classifier, FrozenEstimator):
            return [learner.classifier]
        label, *groups = targets[rows].T
        if any(len(np.unique(target)) < 2 for target in (label, *groups)):
            problem = f"One of the {self.cv} folds has all rows but those of one class, or of one group."
            raise InputError(problem, remedy="Merge rare classes and groups, or pass more rows of them.")
        seen, options = take_rows(view, rows), {}
        if weight is not None and has_fit_parameter(learner.classifier, "sample_weight"):
            options = {"sample_weight": weight[rows]}
        told = _beside(seen, np.eye(len(self.classes_))[label, 1:], "label") if groups else None
        models = [clone(learner.classifier).fit(seen, label, **options)]
        return models + [clone(learner.classifier).fit(told, group, **options) for group in groups]

    def _log_ratios(self, learner: Learner, models: list[Any], view: Any) -> np.ndarray:
        """Return log p / p of the first, of the classes and then of each column's groups, given each label."""
        of_label, *of_groups = models
        known = of_label.classes_  # numbers of the classes, unless somebody else fitted it
        if isinstance(learner.classifier, FrozenEstimator):
            known = self._places(known)
        parts = [_ratios(of_label, view, known, len(self.classes_))]
        n = len(parts[0])
        for model, names in zip(of_groups, self._estimated_groups(of_groups), strict=True):
            given = [_beside(view, np.tile(row[1:], (n, 1)), "label") for row in np.eye(len(self.classes_))]
            each = [_ratios(model, told, model.classes_, len(names)) for told in given]
            parts.append(np.stack(each, -1).reshape(n, -1))  # by group, then by label
        return np.hstack(parts)

    def _places(self, classes: np.ndarray) -> np.ndarray:
        """Return the numbers of the classes that somebody else's classifier knows."""
        unknown = [label for label in classes.tolist() if label not in self.classes_.tolist()]
        if unknown:
            problem = f"The FrozenEstimator knows the class {unknown[0]!r}, which y does not have."
            raise InputError(problem, remedy="Pass the labels that it was fitted to.")
        return np.searchsorted(self.classes_, classes)

    def _without_groups(self) -> str:
        """Return why no groups are estimated."""
        if self.group_encoder_ is None:
            return "Fit with sensitive_features."
        if self.encode_sensitive:
            return "With encode_sensitive=True they are known, so nothing estimates them."
        return "A FrozenEstimator knows the label only: pass another classifier beside it."

    def _estimated_groups(self, models: list[Any]) -> list[list[str]]:
        """Return the names of the groups that each of these models estimates."""
        return self.group_encoder_.names_ if models and self.group_encoder_ is not None else []

    def _ratios_of(self, features: Any) -> list[np.ndarray]:
        check_is_fitted(self)
        scaled = np.asarray(features, dtype=np.float64)[:, : len(self.mean_)]
        return self._ratios_by_target(scaled * self.scale_ + self.mean_)

    def _ratios_by_target(self, estimates: np.ndarray) -> list[np.ndarray]:
        """Return all learners' ratios of the label (n, ratios), then of each column's groups (n, ratios, C)."""
        n, classes, groups = len(estimates), len(self.classes_), self._estimated_groups(self.models_)
        parts: list[list[np.ndarray]] = [[] for _ in range(1 + len(groups))]
        place = 0
        for models in self.models_:
            widths = [classes - 1, *((len(names) - 1) * classes for names in groups)]
            for target, width in enumerate(widths[: len(models)]):
                parts[target].append(estimates[:, place : place + width])
                place += width
        label, *given = (np.hstack(part) for part in parts if part)
        return [label, *(ratios.reshape(n, -1, classes) for ratios in given)]

    def _blends(self, estimates: np.ndarray, targets: np.ndarray, weight: Any) -> list[LogisticRegression]:
        """Fit a logistic regression of the label, and of each column's group given the label, to learners' ratios."""
        label, *groups = self._ratios_by_target(estimates)
        rows = np.arange(len(targets))
        seen = [label, *(ratios[rows, :, targets[:, 0]] for ratios in groups)]
        blend = LogisticRegression(max_iter=1_000)
        return [clone(blend).fit(x, target, weight) for x, target in zip(seen, targets.T, strict=False)]

    def _beside_columns(self, estimates: np.ndarray, X: Any, sensitive_features: Any) -> np.ndarray:
        scaled = ((estimates - self.mean_) / self.scale_).astype(np.float32)
        known = {"sensitive_features": sensitive_features} if self.encode_sensitive else {}
        if self.columns:
            return np.hstack([scaled, self.table_encoder_.transform(X, **known)])
        told = self.table_encoder_.sensitive_indicators(sensitive_features, len(scaled))
        return np.hstack([scaled, told.astype(np.float32)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _rows(X: Any) -> Any:
    """Return a frame or a list as it is, anything else as an array."""
    known = isinstance(as_frame(X), nw.DataFrame) or isinstance(X, (list, tuple))
    return X if known else check_array(X, dtype=None, ensure_all_finite=False)


def _beside(view: Any, labels: np.ndarray, name: str) -> Any:
    """Return rows with columns of numbers beside them, named "label 0" or "group 0" and so on in a frame."""
    frame = as_frame(view)
    if isinstance(frame, nw.DataFrame):
        space = nw.get_native_namespace(frame)
        new = [nw.new_series(f"{name} {i}", column, backend=space) for i, column in enumerate(labels.T)]
        return frame.with_columns(*new).to_native()
    return np.column_stack([view, labels])


def _ratios(model: Any, view: Any, known: np.ndarray, n: int) -> np.ndarray:
    """Return log p - log p of the first of n classes, of which the model knows some.  (rows, n - 1)"""
    found = model.predict_proba(view)
    probabilities = np.zeros((len(found), n))
    probabilities[:, known] = found
    logs = np.log(np.maximum(probabilities, SMALLEST))
    return logs[:, 1:] - logs[:, :1]
