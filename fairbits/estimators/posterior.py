"""Estimates of p(y, s | x), all that a code of x needs to know about a row, and the classifiers that make them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import cache
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
from threadpoolctl import ThreadpoolController

from fairbits.encoding import GroupEncoder, TableEncoder, take_rows
from fairbits.encoding.columns import as_frame
from fairbits.errors import InputError
from fairbits.estimators import inputs
from fairbits.estimators.fitting import number_cells
from fairbits.estimators.leaf_tables import tree_probabilities
from fairbits.settings import check_settings, setting

BOOSTED_ROWS = 1_500  # with fewer, boosted trees add more noise than they see
THREADED_ROWS = 200_000  # with fewer, threads of boosted trees gain little, and on a busy machine wait for one another
ROWS_PER_COLUMN = 50  # with fewer, a code of the columns errs more than the estimates do

SMALLEST = 1e-6  # probability, before its logarithm is taken


class Learner(NamedTuple):
    """A classifier and the form in which it sees the rows: as "numbers", as "levels" for trees, or as they are."""

    name: str
    classifier: Any
    sees: str = "rows"

    @property
    def is_frozen(self) -> bool:
        """Whether somebody else has fitted the classifier, to the label."""
        return isinstance(self.classifier, FrozenEstimator)

    def threads(self, n_rows: int) -> AbstractContextManager:
        """Return the context in which it runs: one thread for our trees on few rows."""
        return _thread_pools().limit(limits=1) if self.sees == "levels" and n_rows < THREADED_ROWS else nullcontext()

    def fitted(self, n_classes: int, rows: Any, targets: np.ndarray, weight: Any) -> list[Any]:
        """Return a classifier of the label, and for each sensitive column one of the group, which also sees the label.

        Targets (n, 1 + columns) are the numbers of labels and groups.
        """
        if self.is_frozen:
            return [self.classifier]
        if any(len(np.unique(target)) < 2 for target in targets.T):
            problem = "One of the folds has all rows but those of one class, or of one group."
            raise InputError(problem, remedy="Merge rare classes and groups, or pass more rows of them.")
        weighs = weight is not None and has_fit_parameter(self.classifier, "sample_weight")
        options = {"sample_weight": weight} if weighs else {}
        label, *groups = targets.T
        models = [clone(self.classifier).fit(rows, label, **options)]
        if groups:
            informed = beside(rows, np.eye(n_classes)[label, 1:], "label")
            models += [clone(self.classifier).fit(informed, group, **options) for group in groups]
        return models

    def log_ratios(self, models: list[Any], rows: Any, classes: np.ndarray, groups: list[list[str]]) -> np.ndarray:
        """Return log p / p of the first, of the classes and then of each column's groups, given each label."""
        of_label, *of_groups = models
        known = of_label.classes_  # numbers of the classes, unless somebody else fitted it
        if self.is_frozen:
            unknown = [label for label in known.tolist() if label not in classes.tolist()]
            if unknown:
                problem = f"The FrozenEstimator knows the class {unknown[0]!r}, which y does not have."
                raise InputError(problem, remedy="Pass the labels that it was fitted to.")
            known = np.searchsorted(classes, known)
        parts = [self._ratios(of_label, rows, known, len(classes))]
        n = len(parts[0])
        for model, names in zip(of_groups, groups, strict=False):
            given = [beside(rows, np.tile(label[1:], (n, 1)), "label") for label in np.eye(len(classes))]
            each = [self._ratios(model, informed, model.classes_, len(names)) for informed in given]
            parts.append(np.stack(each, -1).reshape(n, -1))  # by group, then by label
        return np.hstack(parts)

    def _ratios(self, model: Any, rows: Any, known: np.ndarray, n: int) -> np.ndarray:
        """Return log p - log p of the first of n classes, of which the model knows some.  (rows, n - 1)"""
        found = tree_probabilities(model, rows) if self.sees == "levels" else model.predict_proba(rows)
        probabilities = np.zeros((len(found), n))
        probabilities[:, known] = found
        logs = np.log(np.maximum(probabilities, SMALLEST))
        return logs[:, 1:] - logs[:, :1]


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the libraries with threads of their own, which takes longer than to estimate a few rows."""
    return ThreadpoolController()


def beside(rows: Any, columns: np.ndarray, name: str) -> Any:
    """Return rows with columns of numbers beside them, named "label 0" or "group 0" and so on in a frame."""
    frame = as_frame(rows)
    if isinstance(frame, nw.DataFrame):
        space = nw.get_native_namespace(frame)
        new = [nw.new_series(f"{name} {i}", column, backend=space) for i, column in enumerate(columns.T)]
        return frame.with_columns(*new).to_native()
    return np.column_stack([rows, columns])


@dataclass(eq=False, repr=False)
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
    features : "log-ratios", or "probabilities": p(y,s|x) itself, for a code with linear scores
        (`LinearCodeClassifier`). Of several columns taken each on its own, p(y,s|x) of every column
    columns : whether the encoded columns of X stand beside log-ratios, to correct them where they err; None puts them
        there if there are at least 50 rows for each, because with fewer a code learns them by heart
    encode_sensitive : let the models see the groups, and put these beside the estimates: p(y|x,s) and s take the place
        of p(y|x) and p(s|x,y). `transform` then needs `sensitive_features`
    groups : "intersection" of several sensitive columns: one model of their crossings, which need 10 rows each. With
        "each", one model per column, given the label. Or a `GroupEncoder`, which sets that number, too
    random_state : seed of the folds

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, s = rng.normal(size=(200, 3)), rng.choice(["a", "b"], 200)
    >>> encoder = PosteriorEncoder(columns=False)
    >>> features = encoder.fit_transform(X, X[:, 0] > 0, sensitive_features=s)
    >>> encoder.get_feature_names_out().tolist()
    ['linear: True', 'linear: b if False', 'linear: b if True']
    >>> joint = encoder.posterior(features)  # p(y,s|x) of each row, by models that have not seen it
    >>> p_label, p_group = joint.sum(2), joint.sum(1)
    """

    estimators: Any = "default"
    _: KW_ONLY
    cv: int = 5
    features: str = setting("log-ratios", one_of=("log-ratios", "probabilities"))
    columns: bool | None = None
    encode_sensitive: bool = False
    groups: str | GroupEncoder = "intersection"
    random_state: Any = 0

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the models to all rows, and the scales of the estimates to those of models that have not seen them."""
        self.fit_transform(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the estimates of these rows by models that have not seen them.  (n, features) float32

        Without sensitive features it estimates the label alone.
        """
        check_settings(self)
        labels, X = inputs.read_labels(self, y), _rows(X)
        if len(labels) != len(X):
            raise InputError(f"y has {len(labels)} labels for {len(X)} rows.", remedy="Pass one per row.")
        if sensitive_features is not None and not self.encode_sensitive:
            inputs.warn_of_sensitive(X, sensitive_features, stacklevel=4)
        weight = np.ones(len(labels)) if sample_weight is None else inputs.read_weights(sample_weight, len(labels))
        used = np.flatnonzero(weight)
        rows, s, weight = (take_rows(part, used) for part in (X, sensitive_features, weight))
        targets, content = self._read(rows, labels[used], s)
        order = inputs.canonical_order(content, targets, weight)
        rows, s, targets, weight = (take_rows(part, order) for part in (rows, s, targets, weight))
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
        self.classes_, number = inputs.number_classes(labels)
        known = {"sensitive_features": sensitive_features}
        self.table_encoder_ = TableEncoder(encode_sensitive=self.encode_sensitive).fit(X, **known)
        inputs.copy_feature_names(self, self.table_encoder_)
        enough = ROWS_PER_COLUMN * len(self.table_encoder_.get_feature_names_out()) <= len(labels)
        self.has_columns_ = enough if self.columns is None else self.columns
        content = self.table_encoder_.levels(X, **known)
        self.group_encoder_: Any = None
        if sensitive_features is None:
            return number[:, None], content
        self.group_encoder_ = inputs.new_group_encoder(self.groups).fit(sensitive_features, n_rows=len(number))
        return np.column_stack([number, self.group_encoder_.transform(sensitive_features)]), content

    def _cross_fitted(self, X: Any, s: Any, targets: np.ndarray, weight: Any) -> np.ndarray:
        """Fit all models; return the estimates of these rows by models that have not seen them.  (n, ratios)"""
        folds = self._folds(targets)
        targets = targets[:, :1] if self.encode_sensitive else targets  # a group that is known needs no estimate
        self.learners_, self.models_, out_of_fold = self._learners(len(targets)), [], []
        n_classes, known = len(self.classes_), (self.classes_, self._group_names)
        for learner in self.learners_:
            view = self._view(X, s, learner)
            with learner.threads(len(targets)):
                self.models_.append(learner.fitted(n_classes, view, targets, weight))
                held = learner.log_ratios(self.models_[-1], view, *known)
                for train, test in () if learner.is_frozen else folds:
                    fold = learner.fitted(n_classes, *(take_rows(part, train) for part in (view, targets, weight)))
                    held[test] = learner.log_ratios(fold, take_rows(view, test), *known)
            out_of_fold.append(held)
        estimates = np.hstack(out_of_fold)
        label, *groups = self._by_target(estimates)
        own = [label, *(given[np.arange(len(targets)), :, targets[:, 0]] for given in groups)]
        pairs = zip(own, targets.T, strict=False)  # nothing estimates groups where all classifiers are frozen
        # A single classifier's most probable class, of two, stays the most probable one.
        free = [len(self.learners_) > 1, *(True for _ in groups)]
        self.blends_ = [
            LogisticRegression(max_iter=1_000, fit_intercept=intercept).fit(ratios, target, weight)
            for intercept, (ratios, target) in zip(free, pairs, strict=False)
        ]
        return estimates

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the estimates of other rows; `encode_sensitive` needs their groups.  (n, features) float32"""
        check_is_fitted(self)
        X = _rows(X)
        return self._beside_columns(self._estimates(X, sensitive_features), X, sensitive_features)

    def _estimates(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the log-ratios by the models that were fitted to all rows.  (n, ratios)"""
        known, found = (self.classes_, self._group_names), []
        for learner, models in zip(self.learners_, self.models_, strict=True):
            view = self._view(X, sensitive_features, learner)
            with learner.threads(len(view)):
                found.append(learner.log_ratios(models, view, *known))
        return np.hstack(found)

    def posterior(self, features: Any, *, column: int = 0) -> np.ndarray:
        """Return p(y,s|x) of rows, given what `fit_transform` or `transform` made of them.  (n, C, K)

        A logistic regression, fitted to the estimates of models that have not seen the rows, weighs the learners. So
        the posterior of what `fit_transform` returned is out of fold up to these few weights.

        Parameters
        ----------
        features : (n, features) as returned by this encoder
        column : which of several sensitive columns, where `groups` takes each on its own
        """
        sizes = [len(names) for names in self._group_names]
        if self.features == "probabilities" and np.shape(features)[1] > len(self.classes_):
            joint = np.asarray(features, dtype=np.float64).reshape(len(features), len(self.classes_), -1)
            return np.split(joint, np.cumsum(sizes)[:-1], axis=2)[column]
        of_groups = [] if self.features == "probabilities" else self._ratios_of(features)[1:]
        if not of_groups:
            remedy = "A FrozenEstimator knows the label only: pass another classifier beside it."
            if self.encode_sensitive:
                remedy = "With encode_sensitive=True they are known, so nothing estimates them."
            if self.group_encoder_ is None:
                remedy = "Fit with sensitive_features."
            raise InputError("There is no estimate of the groups.", remedy=remedy)
        return self.label_probabilities(features)[:, :, None] * self._given_label(of_groups, column)

    def _given_label(self, of_groups: list[np.ndarray], column: int) -> np.ndarray:
        """Return p(s|x,y) of a column.  (n, C, K)"""
        model, given = self.blends_[1 + column], of_groups[column]
        return np.stack([model.predict_proba(given[..., y]) for y in range(len(self.classes_))], 1)

    def _probabilities(self, estimates: np.ndarray, sensitive_features: Any) -> np.ndarray:
        """Return p(y,s|x) of all columns, or of a label alone where nothing is known of groups.  (n, C x all K)"""
        ratios, *of_groups = self._by_target(estimates)
        label = self.blends_[0].predict_proba(ratios)
        given = [self._given_label(of_groups, column) for column in range(len(of_groups))]
        if self.encode_sensitive:
            numbers = self.group_encoder_.transform(sensitive_features, n_rows=len(label)).T
            given = [np.eye(len(k))[own][:, None] for own, k in zip(numbers, self._group_names, strict=True)]
        joint = label[:, :, None] * np.concatenate(given or [np.ones((len(label), 1, 1))], 2)
        return joint.reshape(len(label), -1).astype(np.float32)

    def label_probabilities(self, features: Any) -> np.ndarray:
        """Return p(y|x), with `encode_sensitive` p(y|x,s), of rows given as in `posterior`.  (n, C)"""
        if self.features == "probabilities":
            first = [len(names) for names in self._group_names[:1]] or [1]
            known = np.asarray(features, dtype=np.float64).reshape(len(features), len(self.classes_), -1)
            return known[:, :, : first[0]].sum(2)
        return self.blends_[0].predict_proba(self._ratios_of(features)[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the estimates by learner, class or group, and label; then the encoded columns."""
        check_is_fitted(self)
        if self.features == "probabilities":
            known = self.encode_sensitive or len(self.blends_) > 1  # of the groups of a row
            seen = [group for column in self._group_names for group in column] if known else [""]
            return np.array([f"p({label}{', ' * bool(g)}{g})" for label in self.classes_ for g in seen], dtype=object)
        names = []
        for learner, models in zip(self.learners_, self.models_, strict=True):
            names += [f"{learner.name}: {label}" for label in self.classes_[1:]]
            groups = [group for column in self._group_names[: len(models) - 1] for group in column[1:]]
            names += [f"{learner.name}: {group} if {label}" for group in groups for label in self.classes_]
        encoder = self.table_encoder_
        names += list(encoder.get_feature_names_out()) if self.has_columns_ else encoder.indicator_names
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
        if learner.sees == "numbers":
            return encoder.transform(X, sensitive_features=sensitive_features)
        if learner.sees == "levels":
            return encoder.levels(X, sensitive_features=sensitive_features)
        if not self.encode_sensitive or learner.is_frozen:
            return X
        return beside(X, encoder.sensitive_indicators(sensitive_features, len(X)), "group")

    def _folds(self, targets: np.ndarray) -> list[Any]:
        if not (isinstance(self.cv, Integral) and 2 <= self.cv <= len(targets)):
            problem = f"must be a whole number of folds from 2 to the number of rows, {len(targets)}."
            raise InputError(problem, argument="cv", value=self.cv)
        cells = number_cells(targets)
        sizes = np.bincount(cells)
        cells[sizes[cells] < self.cv] = sizes.argmax()
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.random_state)
        return list(folds.split(cells, cells))

    @property
    def _group_names(self) -> list[list[str]]:
        return [] if self.group_encoder_ is None else self.group_encoder_.names_

    def _ratios_of(self, features: Any) -> list[np.ndarray]:
        check_is_fitted(self)
        scaled = np.asarray(features, dtype=np.float64)[:, : len(self.mean_)]
        return self._by_target(scaled * self.scale_ + self.mean_)

    def _by_target(self, estimates: np.ndarray) -> list[np.ndarray]:
        """Return all learners' ratios of the label (n, ratios), then of each column's groups (n, ratios, C)."""
        classes = len(self.classes_)
        widths = [classes - 1, *((len(names) - 1) * classes for names in self._group_names)]
        target = np.concatenate([np.repeat(np.arange(len(models)), widths[: len(models)]) for models in self.models_])
        label, *groups = (np.compress(target == number, estimates, axis=1) for number in np.unique(target))
        return [label, *(ratios.reshape(len(ratios), -1, classes) for ratios in groups)]

    def _beside_columns(self, estimates: np.ndarray, X: Any, sensitive_features: Any) -> np.ndarray:
        if self.features == "probabilities":
            return self._probabilities(estimates, sensitive_features)
        scaled = ((estimates - self.mean_) / self.scale_).astype(np.float32)
        if self.has_columns_:
            return np.hstack([scaled, self.table_encoder_.transform(X, sensitive_features=sensitive_features)])
        indicators = self.table_encoder_.sensitive_indicators(sensitive_features, len(scaled))
        return np.hstack([scaled, indicators.astype(np.float32)])

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
