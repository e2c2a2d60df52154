"""What model.json holds of methods, pipelines and certified classifiers; see `encoder_state` for how it is written."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
import pandas as pd
import torch
from pydantic import Field, model_validator
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from torch import Tensor

import fairbits
from fairbits.certificate import Certificate, GroupBounds
from fairbits.encoding import GroupEncoder, SeenRows, TableEncoder
from fairbits.estimators import CertifiedClassifier, InvariantClassifier, check_settings
from fairbits.modelfile.encoder_state import (
    NOT_KEPT,
    GroupsState,
    LabelState,
    Output,
    Scalar,
    TableState,
    Whole,
    output_of,
    plain,
    with_output,
)
from fairbits.modelfile.sealed_files import Count, ModelFileError, Sha256, Size, State, need

MAX_LAYERS = 256
RETIRED = ("unlabelled", "prior_correction", "leakage_rows")  # settings of version 0.1
MAX_CELLS = 2**15  # sensitive columns times classes: training may keep a part of the network for each

Share = Annotated[float, Field(gt=0, lt=1)]
Bound = Annotated[float, Field(ge=0, le=1)]
Gamma = Annotated[int | float, Field(ge=0, le=1)]
Setting = Scalar | Annotated[list[Size], Field(max_length=MAX_LAYERS)] | None
ReadWeights = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # from tensors without numbers to those of the file


def with_settings(cls: type, values: dict[str, Any]) -> Any:
    """Return an object with the settings of a file: the inverse of `plain` for a dataclass.

    A setting that the file does not have keeps its default. Settings that belong to a dataclass within `cls` may also
    stand beside it, as they do in older files.
    """
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    known = {field.name: field.type for field in dataclasses.fields(cls) if field.name not in NOT_KEPT}
    for name, kind in known.items():
        group = next((t for t in (kind, *get_args(kind)) if isinstance(t, type) and dataclasses.is_dataclass(t)), None)
        if group is None:
            continue
        inner = {field.name for field in dataclasses.fields(group)}
        moved = {other: values.pop(other) for other in sorted((inner - set(known)) & set(values))}
        given = values.get(name)
        if isinstance(given, dict):
            values[name] = with_settings(group, {**moved, **given})
        elif moved:
            own = {name: given} if name in inner and given is not None else {}
            values[name] = with_settings(group, {**moved, **own})
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{cls.__name__} has no setting {unknown[0][:80]!r} here; a newer fairbits may have it")
    return cls(**values)


def of_today(name: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and settings that a method of an older file has today.

    >>> of_today("BinaryMIClassifier", {"gamma": 0.1, "prior_correction": True, "leakage_rows": "all"})
    ('DebiasedMIClassifier', {'gamma': 0.1, 'rebalance': 'prior'})
    """
    today = {name: value for name, value in settings.items() if name not in RETIRED}
    rows = settings.get("leakage_rows", "all")
    rebalance = ["prior"] * bool(settings.get("prior_correction")) + [rows] * (rows != "all")
    if not rebalance:
        return name, today
    return name.replace("Binary", "Debiased"), {**today, "rebalance": "+".join(rebalance)}


class MethodState(State):
    """A fitted method without its weights."""

    kind: Literal["method"]
    name: str
    settings: dict[str, Setting | dict[str, Setting]]
    input_shape: list[Size]
    input_dtype: Literal["float32", "uint8"]
    feature_names_in: list[str] | None
    classes: LabelState
    groups: GroupsState | None
    fingerprint: Sha256  # of the training rows as a table
    history: Annotated[list[dict[str, Count | float | Literal["nan", "inf", "-inf"]]], Field(min_length=1)]
    best_epoch: Count
    output: Output

    @model_validator(mode="after")
    def _check(self) -> Self:
        shape, names, n_classes = self.input_shape, self.feature_names_in, len(self.classes.values)
        need(len(shape) in (1, 3), f"input_shape {shape[:9]} is neither that of a row nor that of an image")
        if names is not None:
            need(len(names) == shape[0], f"{len(names)} feature names for {shape[0]} features")
        n_columns = 0 if self.groups is None else len(self.groups.sizes)
        need(n_columns * n_classes <= MAX_CELLS, f"{n_classes} classes and {n_columns} columns are too many")
        same = all(epoch.keys() == self.history[0].keys() for epoch in self.history)
        need(same, "the epochs of the history have different terms")
        found = self.best_epoch in [epoch.get("epoch") for epoch in self.history]
        need(found, f"the best epoch, {self.best_epoch}, is not in the history")
        return self

    @classmethod
    def of(cls, model: Any) -> Self:
        names = getattr(model, "feature_names_in_", None)
        history: Any = [{k: v if math.isfinite(v) else str(v) for k, v in epoch.items()} for epoch in model.history_]
        return cls(
            kind="method",
            name=type(model).__name__,
            settings=plain(model),
            input_shape=plain(model.input_shape_),
            input_dtype=model.input_dtype_,
            feature_names_in=None if names is None else [str(name) for name in names],
            classes=LabelState.of(model.classes_),
            groups=None if model.group_encoder_ is None else GroupsState.of(model.group_encoder_),
            fingerprint=model.training_rows_.fingerprint,
            history=history,
            best_epoch=model.best_epoch_,
            output=output_of(model),
        )

    def build(self, read_weights: ReadWeights) -> InvariantClassifier:
        """Return the fitted method; memory for weights is taken after they are known to be the network's."""
        name, settings = of_today(self.name, self.settings)
        method = known_method(name)
        need(method is not None, f"the method {name[:80]!r} is unknown here; a newer fairbits may know it")
        model = with_settings(method, settings)
        check_settings(model)
        model.input_shape_, model.n_features_in_ = tuple(self.input_shape), self.input_shape[0]
        model.input_dtype_ = self.input_dtype
        if self.feature_names_in is not None:
            model.feature_names_in_ = np.array(self.feature_names_in, dtype=object)
        model.classes_ = self.classes.build()
        model.group_encoder_ = None if self.groups is None else self.groups.build()
        model.groups_ = [] if model.group_encoder_ is None else model.group_encoder_.names_
        model.training_rows_, model.has_unlabelled_ = SeenRows.of_table(self.fingerprint), False  # only training asks
        model.history_ = [{k: float(v) if isinstance(v, str) else v for k, v in e.items()} for e in self.history]
        model.best_epoch_, model.n_iter_ = self.best_epoch, model.history_[-1]["epoch"] + 1
        with torch.device("meta"):  # shapes alone
            inputs = model.n_features_in_ if len(self.input_shape) == 1 else model.input_shape_
            net = model.build(inputs, len(model.classes_))
        net.load_state_dict(read_weights(net.state_dict()), strict=True, assign=True)
        for module in net.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if buffer.is_meta:  # only training needs it
                    setattr(module, name, None)
        model.net_ = net.eval().requires_grad_(False)
        return with_output(model, self.output)


def known_method(name: str) -> Any:
    """Return one of fairbits' own methods by its public name, None for anything else: a file imports nothing."""
    found = getattr(fairbits, name) if name in fairbits.__all__ else None
    return found if isinstance(found, type) and issubclass(found, InvariantClassifier) else None


def method_of(model: Any) -> Any:
    """Return fairbits' own method within a model, whose network has the weights; None if there is none."""
    model = getattr(model, "estimator_", model)
    model = model[-1] if isinstance(model, Pipeline) else model
    return model if type(model) is known_method(type(model).__name__) else None


class StepState(State):
    name: Annotated[str, Field(min_length=1)]
    model: Annotated[TableState | MethodState, Field(discriminator="kind")]


class PipelineState(State):
    """A pipeline of table encoders that ends in a method."""

    kind: Literal["pipeline"]
    steps: Annotated[list[StepState], Field(min_length=1, max_length=16)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds, names = [step.model.kind for step in self.steps], {step.name for step in self.steps}
        whole = kinds == ["table"] * (len(kinds) - 1) + ["method"]
        need(whole, f"a pipeline of {kinds} does not consist of table encoders and a method at the end")
        good = len(names) == len(kinds) and not any("__" in name for name in names)
        need(good, "the names of the steps must differ and hold no '__'")
        return self

    @classmethod
    def of(cls, model: Pipeline) -> Self:
        wrong = [type(step).__name__ for _, step in model.steps[:-1] if type(step) is not TableEncoder]
        if wrong or method_of(model) is None:
            raise ModelFileError(
                f"A pipeline with a {(wrong or [type(model[-1]).__name__])[0]} cannot be saved; a model file holds "
                "pipelines of TableEncoder and a method of fairbits."
            )
        return cls(kind="pipeline", steps=[StepState(name=name, model=state_of(step)) for name, step in model.steps])

    def build(self, read_weights: ReadWeights) -> Pipeline:
        steps = [(step.name, step.model.build(read_weights)) for step in self.steps]
        for (_, encoder), (name, step) in pairwise(steps):
            width, needed = len(encoder.get_feature_names_out()), step.n_features_in_
            need(width == needed, f"step {name[:80]!r} takes {needed} columns and is given {width}")
        return Pipeline(steps)


class CoarseState(State):
    cells: Count | None
    sha256: Sha256 | None


class ReleaseState(State):
    draws: Size
    eps: Annotated[float, Field(ge=0, lt=0.5)]
    coarse: CoarseState | None


class BoundsState(State):
    column: str
    label: Scalar | None
    rows: dict[str, Count]
    total_variation: Bound
    balanced_accuracy: Bound
    information: float
    estimated_total_variation: float
    estimated_information: float


class CertificateState(State):
    confidence: Share
    bounds: list[BoundsState]
    release: ReleaseState
    release_words: str
    prior: str
    exact: bool
    asymptotic: bool
    simultaneous: bool
    seeded: bool
    promise: str | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        need(any(b.label is None for b in self.bounds), "a certificate needs a bound among all rows")
        return self

    def build(self) -> Certificate:
        content = self.model_dump()
        return Certificate(**{**content, "bounds": tuple(GroupBounds(**bounds) for bounds in content["bounds"])})


class TemplateState(State):
    """What differs between the estimator that a certified classifier was given and the model it chose."""

    step: str | None  # the name of the method in the pipeline
    gamma: Gamma

    @classmethod
    def of(cls, template: Any) -> Self:
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        return cls(step=step, gamma=plain(method.gamma))

    def build(self, chosen: Any) -> Any:
        template = clone(chosen)
        method_of(template).set_params(gamma=self.gamma)
        if isinstance(template, Pipeline) and self.step is not None:
            template.steps[-1] = (self.step, template[-1])
        return template


class CertifiedState(State):
    """A fitted `CertifiedClassifier`: its settings, the model it chose, and that model's certificate."""

    kind: Literal["certified"]
    max_disparity: Share | None
    max_information: Share | None
    confidence: Share
    calibration_fraction: Share
    gammas: Annotated[list[Gamma], Field(min_length=1)]
    template: TemplateState | None
    chosen: Annotated[MethodState | PipelineState, Field(discriminator="kind")]
    certificate: CertificateState
    path: list[dict[str, bool | Whole | float]]
    output: Output

    @classmethod
    def of(cls, model: CertifiedClassifier) -> Self:
        settings = model.get_params(deep=False)
        return cls(
            kind="certified",
            **{name: plain(value) for name, value in settings.items() if name not in ("estimator", *NOT_KEPT)},
            template=None if model.estimator is None else TemplateState.of(model.estimator),
            chosen=state_of(model.estimator_),
            certificate=CertificateState.model_validate(plain(model.certificate_)),
            path=model.path_.to_dict("records"),
            output=output_of(model),
        )

    def build(self, read_weights: ReadWeights) -> CertifiedClassifier:
        chosen = self.chosen.build(read_weights)
        method = method_of(chosen)
        whole = hasattr(method, "code_probabilities") and method.group_encoder_ is not None
        need(whole, f"a {type(method).__name__} without a code or groups cannot have been certified")
        model = CertifiedClassifier(
            None if self.template is None else self.template.build(chosen),
            max_disparity=self.max_disparity,
            max_information=self.max_information,
            confidence=self.confidence,
            gammas=tuple(self.gammas),
            calibration_fraction=self.calibration_fraction,
        )
        model.certificate_, model.estimator_ = self.certificate.build(), chosen
        model.path_ = pd.DataFrame(self.path)
        model.classes_, model.n_features_in_ = method.classes_, chosen.n_features_in_
        return with_output(model, self.output)


class FileState(State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: Annotated[
        MethodState | PipelineState | CertifiedState | TableState | GroupsState, Field(discriminator="kind")
    ]


FITTED: dict[type, tuple[Any, str]] = {  # what can be saved, its state, and the attribute that a fitted one has
    Pipeline: (PipelineState, "steps"),
    TableEncoder: (TableState, "features_"),
    GroupEncoder: (GroupsState, "levels_"),
    CertifiedClassifier: (CertifiedState, "estimator_"),
}


def state_of(model: Any) -> Any:
    """Return the state of a fitted model, without its weights."""
    kind = type(model)
    is_method = kind is known_method(kind.__name__)
    if not is_method and kind not in FITTED:
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{inside}. A model file holds fairbits' own methods, encoders and "
            "CertifiedClassifier, and pipelines of TableEncoder and a method."
        )
    state, attribute = (MethodState, "net_") if is_method else FITTED[kind]
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    return state.of(model)
