"""What model.json holds of a PosteriorEncoder: the settings of its classifiers, and all that they learnt as numbers."""

import base64
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Base64Bytes, Field
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from fairbits.encoding import GroupEncoder
from fairbits.estimators.learners import Learner
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile import model_content
from fairbits.modelfile.boosted_trees import NODE, SET, Trees, boosted_model, categories_of, trees_of
from fairbits.modelfile.model_content import (
    Count,
    GroupsState,
    LabelState,
    Output,
    Scalar,
    Size,
    State,
    TableState,
    Weights,
    copy_names,
)
from fairbits.modelfile.sealed_folder import ModelFileError, need

MAX_NAME = 200  # characters of a learner's name
KEPT = {"linear": LogisticRegression, "boosted": HistGradientBoostingClassifier}  # classifiers that a file can hold
NOT_FINITE = ("inf", "-inf", "nan")  # texts in the file


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class LinearState(State):
    """A fitted LogisticRegression."""

    kind: Literal["linear"]
    feature_names_in: list[str] | None
    dtype: Literal["<f4", "<f8"]
    order: Literal["C", "F"]  # in memory: the same sums, to the last bit
    coef: Base64Bytes
    intercept: Base64Bytes

    @classmethod
    def of(cls, model: Any) -> dict[str, Any]:
        dtype, order = model.coef_.dtype.newbyteorder("<"), "F" if model.coef_.flags.f_contiguous else "C"
        coef, intercept = (_text(part.astype(dtype).tobytes(order)) for part in (model.coef_, model.intercept_))
        parts = {"dtype": dtype.str, "order": order, "coef": coef, "intercept": intercept}
        return cls.parts_of(model, **parts)

    def build(self, classes: np.ndarray, width: int) -> Any:
        """Return a model that predicts classes from so many columns."""
        scores, names = 1 if len(classes) == 2 else len(classes), self.feature_names_in
        coef, intercept = (np.frombuffer(part, self.dtype).copy() for part in (self.coef, self.intercept))
        need(len(intercept) == scores, "a model does not know the classes or groups")
        need(len(coef) == scores * width, f"a model takes {len(coef) // scores} columns, not {width}")
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        need(bool(finite), "the weights of a model are infinite or not numbers")
        model: Any = LogisticRegression(max_iter=1_000)
        model.coef_, model.intercept_ = coef.reshape(scores, width, order=self.order), intercept
        model.classes_, model.n_features_in_ = classes, width
        if names is not None:
            need(len(names) == width, f"{len(names)} names of {width} columns")
            model.feature_names_in_ = np.array(names, dtype=object)
        return model


class BoostedState(State):
    """A fitted HistGradientBoostingClassifier."""

    kind: Literal["boosted"]
    feature_names_in: list[str] | None
    categories: list[list[Scalar | None] | None]  # of each column, null for numbers
    baseline: list[float]
    sizes: list[Size]  # of the trees
    nodes: Base64Bytes
    sets: Base64Bytes

    @classmethod
    def of(cls, model: Any) -> dict[str, Any]:
        trees, baseline = trees_of(model), model._baseline_prediction[0]
        parts = {"categories": categories_of(model), "baseline": baseline, "sizes": trees.sizes}
        parts |= {"nodes": _text(trees.nodes.tobytes()), "sets": _text(trees.sets.astype("<u4").tobytes())}
        return cls.parts_of(model, **parts)

    def build(self, classes: np.ndarray, width: int) -> Any:
        """Return a model that predicts classes from so many columns."""
        columns, names = len(self.categories), self.feature_names_in
        need(len(self.baseline) == (1 if len(classes) == 2 else len(classes)), "a model does not know the classes")
        need(columns == width, f"a model takes {columns} columns, not {width}")
        need(names is None or len(set(names)) == len(names) == width, f"the names of {width} columns are others")
        trees = Trees(np.array(self.sizes), np.frombuffer(self.nodes, NODE), np.frombuffer(self.sets, SET))
        return boosted_model(trees, classes, np.array(self.baseline), self.categories, names)


class LearnerState(State):
    name: Annotated[str, Field(max_length=MAX_NAME)]
    sees: Literal["numbers", "levels", "rows"]
    frozen: LabelState | None  # the classes that a frozen classifier knows
    settings: dict[str, Scalar | list[Scalar | list[Scalar]] | dict[str, Scalar] | None]  # those that are not defaults
    models: Annotated[list[Annotated[LinearState | BoostedState, Field(discriminator="kind")]], Field(min_length=1)]

    @classmethod
    def of(cls, learner: Learner, models: list[Any]) -> dict[str, Any]:
        """Return what a file says of a learner and its models; of their training it keeps nothing."""
        frozen = isinstance(learner.classifier, FrozenEstimator)
        classifier = learner.classifier.estimator if frozen else learner.classifier
        if type(classifier) not in KEPT.values():
            raise ModelFileError(
                f"A PosteriorEncoder with a {type(classifier).__name__} cannot be saved: of the classifiers in it, a "
                "model file keeps scikit-learn's LogisticRegression and HistGradientBoostingClassifier alone.",
                remedy="Keep such a model by the means of the library that it comes from.",
            )
        default = {**type(classifier)().get_params(), "random_state": classifier.random_state}
        settings = {n: value for n, value in classifier.get_params().items() if repr(value) != repr(default[n])}
        state = LinearState if isinstance(classifier, LogisticRegression) else BoostedState
        return {
            "name": learner.name,
            "sees": learner.sees,
            "frozen": LabelState.of(classifier.classes_) if frozen else None,
            "settings": settings,
            "models": [state.of(model.estimator if frozen else model) for model in models],
        }

    def build(self, targets: list[np.ndarray], width: int) -> tuple[Learner, list[Any]]:
        """Return the learner and its models: of the label, and of each column's groups, which also see the label."""
        told = len(targets[0]) - 1  # columns of the label
        targets = targets if self.frozen is None else [self.frozen.build()]
        need(len(self.models) == len(targets), f"{len(self.models)} models of {self.name!r}, not {len(targets)}")
        need(len({model.kind for model in self.models}) == 1, f"the models of {self.name!r} are of several kinds")
        lists = [known or [] for model in self.models for known in getattr(model, "categories", [])]
        numbers = all(isinstance(value, float) for known in lists for value in known)
        need(numbers or self.sees == "rows", f"the levels that {self.name!r} sees are numbers, not texts")
        settings: dict[str, Any] = {n: float(v) if v in NOT_FINITE else v for n, v in self.settings.items()}
        if isinstance(weights := settings.get("class_weight"), dict):  # keys are texts in the file
            settings["class_weight"] = {int(n) if n.isdecimal() else n: weight for n, weight in weights.items()}
        classifier: Any = KEPT[self.models[0].kind](**settings)
        fitted: list[Any] = []
        for model, target in zip(self.models, targets, strict=True):
            built = model.build(target, width + told if fitted else width)
            fitted.append(built.set_params(**classifier.get_params(deep=False)))
        if self.frozen is not None:
            fitted = [classifier := FrozenEstimator(fitted[0])]
        return Learner(self.name, classifier, self.sees), fitted


class PosteriorState(State):
    kind: Literal["posterior"]
    estimators: Literal["default", "one", "several"]
    cv: Count
    columns: bool | None
    has_columns: bool
    encode_sensitive: bool
    grouping: Literal["intersection", "each"] | GroupEncoder  # the setting `groups`
    learners: Annotated[list[LearnerState], Field(min_length=1, max_length=64)]
    blends: list[LinearState]
    classes: LabelState
    table: TableState
    groups: GroupsState | None
    mean: list[float]
    scale: list[Annotated[float, Field(gt=0)]]
    output: Output

    @classmethod
    def of(cls, model: PosteriorEncoder) -> dict[str, Any]:
        one = "one" if hasattr(model.estimators, "predict_proba") else "several"
        return cls.parts_of(
            model,
            estimators="default" if isinstance(model.estimators, str) else one,
            grouping=model.groups,
            learners=[LearnerState.of(*pair) for pair in zip(model.learners_, model.models_, strict=True)],
            blends=[LinearState.of(blend) for blend in model.blends_],
            classes=LabelState.of(model.classes_),
            table=TableState.of(model.table_encoder_),
            groups=GroupsState.of(model.group_encoder_),
        )

    def build(self, weights: Weights) -> PosteriorEncoder:
        encoder: Any = PosteriorEncoder(cv=self.cv, columns=self.columns, encode_sensitive=self.encode_sensitive)
        encoder.groups, encoder.has_columns_ = self.grouping, self.has_columns
        encoder.classes_, table = self.classes.build(), self.table.build(weights)
        known = table.encode_sensitive == self.encode_sensitive
        need(known, "only one of the table encoder and the encoder of estimates reads the groups")
        encoder.table_encoder_ = table
        copy_names(table, encoder)
        encoder.group_encoder_ = None if self.groups is None else self.groups.build(weights)
        groups = [] if encoder.group_encoder_ is None else encoder.group_encoder_.names_
        targets = [np.arange(len(names)) for names in [encoder.classes_, *groups]]
        self._build_models(encoder, targets[:1] if self.encode_sensitive else targets)
        if self.estimators != "default":
            need(self.estimators == "several" or len(self.learners) == 1, "one estimator is not several learners")
            given = [learner.classifier for learner in encoder.learners_]
            encoder.estimators = given if self.estimators == "several" else given[0]
        longest = sum(max(map(len, map(str, names)), default=0) for names in [encoder.classes_, *groups])
        short = len(self.mean) * (longest + MAX_NAME) <= model_content.MAX_TEXT
        need(short, "the names of the estimates would be too long")
        return encoder.set_output(transform=self.output)

    def _build_models(self, encoder: Any, targets: list[np.ndarray]) -> None:
        """Give an encoder the models of labels and groups, and the scales of their estimates."""
        frozen = {label for learner in self.learners if learner.frozen for label in learner.frozen.values}
        need(frozen <= set(self.classes.values), "a frozen model does not know the classes")
        table = encoder.table_encoder_
        widths = {
            "numbers": len(table.get_feature_names_out()),
            "levels": sum(feature is not None for feature in table.features_) + len(table.sensitive_names),
            "rows": encoder.n_features_in_ + len(table.indicator_names),
            "rows alone": encoder.n_features_in_,
        }
        views = [learner.sees if learner.frozen is None else "rows alone" for learner in self.learners]
        built = [learner.build(targets, widths[view]) for learner, view in zip(self.learners, views, strict=True)]
        encoder.learners_, encoder.models_ = map(list, zip(*built, strict=True))
        learners = [sum(len(models) > place for models in encoder.models_) for place in range(len(targets))]
        ratios = [(len(target) - 1) * n for target, n in zip(targets, learners, strict=True) if n]
        need(len(self.blends) == len(ratios), f"{len(self.blends)} blends where {len(ratios)} are needed")
        pairs = zip(self.blends, targets, ratios, strict=False)
        encoder.blends_ = [blend.build(target, width) for blend, target, width in pairs]
        n_estimates = ratios[0] + len(targets[0]) * sum(ratios[1:])
        scaled = len(self.mean) == len(self.scale) == n_estimates
        need(scaled, f"the scales are not those of {n_estimates} estimates")
        encoder.mean_, encoder.scale_ = np.array(self.mean), np.array(self.scale)
