"""What model.json holds of encoders, methods and pipelines: each class checks one part and builds what it describes.

The checks limit names, types and sizes, so that a few bytes in a file cannot ask for much memory; settings are checked
by the objects that have them.
"""

import base64
import dataclasses
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

import numpy as np
import torch
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from torch import Tensor

import fairbits
from fairbits.encoding import GroupEncoder, SeenRows, TableEncoder
from fairbits.encoding.columns import Feature
from fairbits.encoding.group_encoder import MAX_TEXT, SensitiveColumn
from fairbits.estimators import Schedule
from fairbits.estimators.base import TrainedClassifier
from fairbits.estimators.posterior import Learner, PosteriorEncoder
from fairbits.modelfile.boosted_trees import NODE, SET, Trees, boosted_model, categories_of, trees_of
from fairbits.modelfile.manifest import ModelFileError
from fairbits.settings import check_settings
from fairbits.storage import need

MAX_NAME = 200  # characters of a learner's name
NOT_KEPT = {"device", "random_state", "verbose"}  # settings of this machine and session; a seed would undo the noise
PARTS: dict[str, Any] = {"schedule": Schedule, "groups": GroupEncoder}  # settings that are objects
RETIRED = ("unlabelled", "prior_correction", "leakage_rows")  # settings of version 0.1
KEPT = {"linear": LogisticRegression, "boosted": HistGradientBoostingClassifier}  # classifiers that a file can hold
NOT_FINITE = ("inf", "-inf", "nan")  # texts in the file

Count = Annotated[int, Field(ge=0, lt=2**53)]
Size = Annotated[int, Field(ge=1, lt=2**53)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Share = Annotated[float, Field(gt=0, lt=1)]
Scalar = bool | Whole | float | str
Setting = Scalar | Annotated[list[Size], Field(max_length=256)] | None
Term = Count | Annotated[float, Field(strict=False, allow_inf_nan=True)]  # "nan" and "inf" are texts in the file
Output = Literal["default", "pandas", "polars"] | None  # of scikit-learn's set_output
Weights = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # from tensors without numbers to those of the file


def known_method(name: str) -> Any:
    """Return one of fairbits' own methods by its public name, None for anything else: a file imports nothing."""
    found = getattr(fairbits, name) if name in fairbits.__all__ else None
    return found if isinstance(found, type) and issubclass(found, TrainedClassifier) else None


def method_of(model: Any) -> Any:
    """Return fairbits' own method within a model, whose network has the weights; None if there is none."""
    model = getattr(model, "estimator_", model)
    model = model[-1] if isinstance(model, Pipeline) else model
    return model if type(model) is known_method(type(model).__name__) else None


def set_columns(model: Any, width: int, names: Any) -> None:
    """Give a model the number of the columns that it was fitted to, and their names if it has any."""
    model.n_features_in_ = width
    if names is not None:
        need(len(names) == width, f"{len(names)} feature names for {width} features")
        model.feature_names_in_ = np.array(names, dtype=object)


def plain(value: Any) -> Any:
    """Return Python's own numbers, texts, lists and dicts for those of numpy, tuples and dataclasses.

    >>> plain({"sizes": (np.int64(3), 4), "rate": np.float64(0.5), "loss": math.nan})
    {'sizes': [3, 4], 'rate': 0.5, 'loss': 'nan'}
    """
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in NOT_KEPT}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ModelFileError(f"A model file holds numbers, texts and truth values, but not {str(value)[:80]!r}.")
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class State(BaseModel):
    """A part of the file: no other keys, no other types, finite numbers; dataclasses within it are held to the same."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def parts_of(cls, model: Any, **parts: Any) -> dict[str, Any]:
        """Return what a file says of a fitted model: these parts, and attributes that have names of other fields."""
        parts["kind"] = get_args(cls.model_fields["kind"].annotation)[0]
        parts["output"] = getattr(model, "_sklearn_output_config", {}).get("transform")
        found = ((name, getattr(model, f"{name}_", getattr(model, name, None))) for name in cls.model_fields)
        return {name: parts.get(name, value) for name, value in found}


class GroupsState(State):
    kind: Literal["groups"]
    parameters: GroupEncoder
    levels: Annotated[list[SensitiveColumn], Field(min_length=1, max_length=64)]
    cells: list[Count] | None
    sizes: list[list[Count]]

    @classmethod
    def of(cls, encoder: GroupEncoder | None) -> dict[str, Any] | None:
        return None if encoder is None else cls.parts_of(encoder, parameters=encoder)

    def build(self, _: Weights | None = None) -> GroupEncoder:
        encoder = dataclasses.replace(self.parameters).restore(self.levels, self.cells)
        shape = [len(level.labels) for level in self.levels] if self.cells is None else [len(self.cells)]
        sizes = [len(sizes) for sizes in self.sizes]
        need(sizes == shape and min(shape) > 1, f"group sizes {sizes[:9]} for columns of {shape[:9]} groups")
        encoder.sizes_ = self.sizes
        return encoder


def built(groups: GroupsState | None) -> GroupEncoder | None:
    """Return the encoder of groups, if there is one."""
    return None if groups is None else groups.build()


class TableState(State):
    kind: Literal["table"]
    parameters: dict[str, Scalar | None]
    feature_names_in: list[str] | None
    features: Annotated[list[Annotated[Feature, Field(discriminator="kind")] | None], Field(min_length=1)]
    dropped: dict[str, str]
    groups: GroupsState | None = None  # among the inputs
    output: Output

    @classmethod
    def of(cls, encoder: TableEncoder) -> dict[str, Any]:
        parameters = {**encoder.get_params(), "dtype": np.dtype(encoder.dtype).name}
        return cls.parts_of(encoder, parameters=parameters, groups=GroupsState.of(encoder.group_encoder_))

    def build(self, _: Weights | None = None) -> TableEncoder:
        need(self.parameters.get("dtype") in ("float32", "float64"), "the dtype is neither float32 nor float64")
        encoder: Any = TableEncoder(**{**self.parameters, "dtype": getattr(np, str(self.parameters["dtype"]))})
        check_settings(encoder)
        set_columns(encoder, len(self.features), self.feature_names_in)
        names = self.feature_names_in or [f"x{i}" for i in range(len(self.features))]
        columns = list(zip(names, self.features, strict=True))
        without = {name for name, feature in columns if feature is None}
        need(without == set(self.dropped), "the dropped columns are not those without a feature")
        length = sum(len(name) * (len(getattr(feature, "categories", ())) + 2) for name, feature in columns)
        levels = [] if self.groups is None else self.groups.levels
        length += sum((len(level.name) + 16) * len(level.labels) for level in levels)
        need(length <= MAX_TEXT, "the names of the encoded columns would be too long")
        encoder.features_, encoder.dropped_, encoder.group_encoder_ = self.features, self.dropped, built(self.groups)
        found = None if self.groups is None else self.groups.parameters.groups
        known = found == ("each" if encoder.encode_sensitive else None)
        need(known, "groups='each' are for encode_sensitive=True, and needed there")
        encoder.check_outputs()
        return encoder.set_output(transform=self.output)


class LabelState(State):
    """The classes: plain values and the numpy type of their array."""

    dtype: Annotated[str, Field(pattern=r"^(bool|u?int(8|16|32|64)|float(16|32|64)|str|object)$")]
    width: Annotated[int, Field(ge=0, le=2**16)]  # characters of a "str"
    values: Annotated[list[Scalar], Field(min_length=2)]

    @classmethod
    def of(cls, classes: np.ndarray) -> dict[str, Any]:
        dtype = classes.dtype
        name, width = ("str", dtype.itemsize // 4) if dtype.kind == "U" else (dtype.name, 0)
        return {"dtype": name, "width": width, "values": classes}

    def build(self) -> np.ndarray:
        n, labels = len(self.values), f"the labels {str(self.values)[:80]}"
        need(self.width * n <= 2**22, f"{n} labels of {self.width} characters are too many")
        array = np.array(self.values, dtype=f"<U{self.width}" if self.dtype == "str" else self.dtype)
        need(repr(array.tolist()) == repr(self.values), f"{labels} are not of the type {self.dtype}")
        need(np.array_equal(np.unique(array), array), f"{labels} are not in order, or some are the same")
        return array


class MethodState(State):
    kind: Literal["method"]
    name: str
    settings: dict[str, Setting | dict[str, Scalar | None]]
    input_shape: tuple[Size, ...]
    input_dtype: Literal["float32", "uint8"]
    feature_names_in: list[str] | None
    classes: LabelState
    groups: GroupsState | None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # of the training rows as a table
    history: Annotated[list[dict[str, Term]], Field(min_length=1)]
    best_epoch: Count
    output: Output

    @classmethod
    def of(cls, model: Any) -> dict[str, Any]:
        parts = {"name": type(model).__name__, "settings": model, "fingerprint": model.training_rows_.fingerprint}
        parts |= {"classes": LabelState.of(model.classes_), "groups": GroupsState.of(model.group_encoder_)}
        return cls.parts_of(model, **parts)

    def build(self, weights: Weights) -> TrainedClassifier:
        """Return the fitted method; memory for weights is taken after they are known to be the network's."""
        shape, history = self.input_shape, self.history
        need(len(shape) in (1, 3), f"input_shape {shape[:9]} is neither that of a row nor that of an image")
        same = all(epoch.keys() == history[0].keys() for epoch in history)
        need(same, "the epochs of the history have different terms")
        found = self.best_epoch in [epoch.get("epoch") for epoch in history]
        need(found, f"the best epoch, {self.best_epoch}, is not in the history")
        model = with_settings(*of_today(self.name, self.settings))
        for name in ("input_shape", "input_dtype", "history", "best_epoch"):
            setattr(model, f"{name}_", getattr(self, name))
        set_columns(model, shape[0], self.feature_names_in)
        model.n_iter_ = history[-1]["epoch"] + 1
        model.training_rows_, model.has_unlabelled_ = SeenRows(), False  # training asks for the latter
        model.training_rows_.fingerprint = self.fingerprint
        model.classes_ = self.classes.build()
        model.group_encoder_ = built(self.groups)
        model.groups_ = [] if model.group_encoder_ is None else model.group_encoder_.names_
        columns, classes = len(model.groups_), len(model.classes_)  # training may keep a part of the network for each
        need(columns * classes <= 2**15, f"{classes} classes and {columns} columns are too many")
        with torch.device("meta"):  # shapes alone
            net = model.build(shape[0] if len(shape) == 1 else shape, classes)
        net.load_state_dict(weights(net.state_dict()), strict=True, assign=True)
        for module in net.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if buffer.is_meta:  # only training needs it
                    setattr(module, name, None)
        model.net_ = net.eval().requires_grad_(False)
        if self.output is not None:
            need(hasattr(model, "set_output"), f"{self.name} has no transform, and so no output to choose")
            model.set_output(transform=self.output)
        return model


def of_today(name: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and settings that a method of an older file has today.

    >>> of_today("BinaryMIClassifier", {"gamma": 0.1, "prior_correction": True, "patience": 9})
    ('DebiasedMIClassifier', {'gamma': 0.1, 'schedule': {'patience': 9}, 'rebalance': 'prior'})
    """
    today = {name: value for name, value in settings.items() if name not in RETIRED}
    for part, cls in PARTS.items():
        inner = {field.name: today[field.name] for field in dataclasses.fields(cls) if field.name in today}
        if inner.keys() - {part}:
            today = {**{name: value for name, value in today.items() if name not in inner}, part: inner}
    rows = settings.get("leakage_rows", "all")
    rebalance = ["prior"] * bool(settings.get("prior_correction")) + [rows] * (rows != "all")
    if not rebalance:
        return name, today
    return name.replace("Binary", "Debiased"), {**today, "rebalance": "+".join(rebalance)}


def with_settings(name: str, settings: dict[str, Any]) -> Any:
    """Return a method with the settings of a file; one that the file does not have keeps its default."""
    method = known_method(name)
    need(method is not None, f"the method {name[:80]!r} is unknown here; a newer fairbits may know it")
    known = {field.name for field in dataclasses.fields(method)} - NOT_KEPT
    for other in sorted(settings.keys() - known):
        raise ValueError(f"{name} has no setting {other[:80]!r} here; a newer fairbits may have it")
    tuples = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
    parts = {key: PARTS.get(key, dict)(**value) for key, value in settings.items() if isinstance(value, dict)}
    model = method(**{**settings, **tuples, **parts})
    check_settings(model)
    return model


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
        scores = 1 if len(classes) == 2 else len(classes)
        coef, intercept = (np.frombuffer(part, self.dtype).copy() for part in (self.coef, self.intercept))
        need(len(intercept) == scores, "a model does not know the classes or groups")
        need(len(coef) == scores * width, f"a model takes {len(coef) // scores} columns, not {width}")
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        need(bool(finite), "the weights of a model are infinite or not numbers")
        model: Any = LogisticRegression(max_iter=1_000)
        model.coef_, model.intercept_ = coef.reshape(scores, width, order=self.order), intercept
        model.classes_ = classes
        set_columns(model, width, self.feature_names_in)
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
        need(names is None or len(set(names)) == len(names) == width, f"the names of {width} columns are different")
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
                remedy="Keep such a model with the tools of its own library.",
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
    features: Literal["log-ratios", "probabilities"] = "log-ratios"  # absent until version 0.2
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

    def build(self, _: Weights | None = None) -> PosteriorEncoder:
        encoder: Any = PosteriorEncoder(cv=self.cv, columns=self.columns, encode_sensitive=self.encode_sensitive)
        encoder.features = self.features
        encoder.groups, encoder.has_columns_ = self.grouping, self.has_columns
        encoder.classes_, table = self.classes.build(), self.table.build()
        known = table.encode_sensitive == self.encode_sensitive
        need(known, "only one of the table encoder and the encoder of estimates reads the groups")
        set_columns(encoder, len(self.table.features), self.table.feature_names_in)
        encoder.table_encoder_, encoder.group_encoder_ = table, built(self.groups)
        groups = [] if encoder.group_encoder_ is None else encoder.group_encoder_.names_
        targets = [np.arange(len(names)) for names in [encoder.classes_, *groups]]
        self._build_models(encoder, targets[:1] if self.encode_sensitive else targets)
        if self.estimators != "default":
            need(self.estimators == "several" or len(self.learners) == 1, "one estimator is not several learners")
            given = [learner.classifier for learner in encoder.learners_]
            encoder.estimators = given if self.estimators == "several" else given[0]
        longest = sum(max(map(len, map(str, names)), default=0) for names in [encoder.classes_, *groups])
        short = len(self.mean) * (longest + MAX_NAME) <= MAX_TEXT
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


Kinds = dict[type, tuple[str, Any]]  # what can be saved: the attribute that a fitted one has, and the part of the file
ENCODERS: Kinds = {TableEncoder: ("features_", TableState), PosteriorEncoder: ("learners_", PosteriorState)}


def describe(model: Any, kinds: Kinds, where: str = "") -> dict[str, Any]:
    """Return what model.json says of a fitted model: a method, or another one of these kinds."""
    kind = type(model)
    is_method = kind is known_method(kind.__name__)
    attribute, state = ("net_", MethodState) if is_method else kinds.get(kind, ("", None))
    if not attribute:
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{where}{inside}. A model file holds fairbits' own methods, encoders, "
            "FairCodeClassifier and CertifiedClassifier, and pipelines of encoders and a method."
        )
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    return state.of(model)


class StepState(State):
    name: Annotated[str, Field(min_length=1)]
    model: TableState | PosteriorState | MethodState = Field(discriminator="kind")


class PipelineState(State):
    kind: Literal["pipeline"]
    steps: Annotated[list[StepState], Field(min_length=1, max_length=16)]

    @classmethod
    def of(cls, pipeline: Pipeline) -> dict[str, Any]:
        parts = [(name, describe(step, ENCODERS, " in a pipeline")) for name, step in pipeline.steps]
        return cls.parts_of(pipeline, steps=[{"name": name, "model": part} for name, part in parts])

    def build(self, weights: Weights) -> Pipeline:
        kinds, names = [step.model.kind for step in self.steps], {step.name for step in self.steps}
        *front, last = kinds
        tables = front[:-1] if front[-1:] == ["posterior"] else front
        whole = last == "method" and set(tables) <= {"table"}
        need(whole, f"a pipeline of {kinds} does not consist of encoders and a method at the end")
        good = len(names) == len(kinds) and not any("__" in name for name in names)
        need(good, "the names of the steps must differ and hold no '__'")
        steps = [(step.name, step.model.build(weights)) for step in self.steps]
        for (_, encoder), (name, step) in pairwise(steps):
            width, needed = len(encoder.get_feature_names_out()), step.n_features_in_
            need(width == needed, f"step {name[:80]!r} takes {needed} columns and is given {width}")
        return Pipeline(steps)
