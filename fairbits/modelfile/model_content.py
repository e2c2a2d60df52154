"""What model.json holds of encoders and methods: each class checks one part of it and builds what it describes.

The checks limit names, types and sizes, so that a few bytes in a file cannot ask for much memory; settings are checked
by the objects that have them.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from sklearn.pipeline import Pipeline
from torch import Tensor

import fairbits
from fairbits.encoding import GroupEncoder, SeenRows, TableEncoder
from fairbits.encoding.columns import Feature
from fairbits.encoding.group_encoder import SensitiveColumn
from fairbits.estimators import InvariantClassifier, Schedule
from fairbits.modelfile.sealed_folder import ModelFileError, need
from fairbits.settings import check_settings

MAX_TEXT = 2**25  # characters of all names that are made of other names: a long one times many
NOT_KEPT = {"device", "random_state", "verbose"}  # settings of this machine and session; a seed would undo the noise
PARTS: dict[str, Any] = {"schedule": Schedule, "groups": GroupEncoder}  # settings that are objects
RETIRED = ("unlabelled", "prior_correction", "leakage_rows")  # settings of version 0.1

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
    return found if isinstance(found, type) and issubclass(found, InvariantClassifier) else None


def method_of(model: Any) -> Any:
    """Return fairbits' own method within a model, whose network has the weights; None if there is none."""
    model = getattr(model, "estimator_", model)
    model = model[-1] if isinstance(model, Pipeline) else model
    return model if type(model) is known_method(type(model).__name__) else None


def copy_names(source: Any, model: Any) -> None:
    """Give a model the columns that another one was fitted to."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(model, name, getattr(source, name))


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

    def build(self, _: Weights) -> GroupEncoder:
        shape, cells = [len(level.labels) for level in self.levels], self.cells
        need(len({level.name for level in self.levels}) == len(shape), "two sensitive columns have the same name")
        for level, n in zip(self.levels, shape, strict=True):
            column, edges = f"the sensitive column {level.name[:40]!r}", level.edges
            need(0 < n == len(set(level.labels)), f"two labels of {column} are the same, or it has none")
            rising = edges is None or (len(edges) == n + 1 and edges == sorted(edges))
            need(rising, f"the edges of {column} do not rise around its bins")
        crossed = self.parameters.groups == "intersection"
        need((cells is not None) == crossed, "cells are for groups='intersection', and needed there")
        if cells is not None:
            combinations = math.prod(shape)
            rising = bool(cells) and cells == sorted(set(cells)) and cells[-1] < combinations
            need(rising, "the cells are not numbers of combinations in rising order")
            need(len(shape) > 1 or len(cells) == shape[0], f"{len(cells)} cells for a column of {shape[0]} groups")
            longest = sum(len(level.name) + max(map(len, level.labels)) + 6 for level in self.levels)
            short = combinations < 2**63 and len(cells) * longest <= MAX_TEXT
            need(short, "the names of the crossed groups would be too long")
            shape = [len(cells)]
        sizes = [len(sizes) for sizes in self.sizes]
        need(sizes == shape and min(shape) > 1, f"group sizes {sizes[:9]} for columns of {shape[:9]} groups")
        encoder = dataclasses.replace(self.parameters)
        check_settings(encoder)
        encoder.levels_, encoder.sizes_ = self.levels, self.sizes
        encoder.cells_ = None if cells is None else np.array(cells, dtype=np.int64)
        return encoder


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

    def build(self, weights: Weights) -> TableEncoder:
        need(self.parameters.get("dtype") in ("float32", "float64"), "the dtype is neither float32 nor float64")
        names, features = self.feature_names_in, self.features
        names = [f"x{i}" for i in range(len(features))] if names is None else names
        need(len(names) == len(features), f"{len(names)} feature names for {len(features)} features")
        without = {name for name, feature in zip(names, features, strict=True) if feature is None}
        need(without == set(self.dropped), "the dropped columns are not those without a feature")
        pairs = zip(names, features, strict=True)
        length = sum(len(name) * (len(getattr(feature, "categories", ())) + 2) for name, feature in pairs)
        levels = [] if self.groups is None else self.groups.levels
        length += sum((len(level.name) + 16) * len(level.labels) for level in levels)
        need(length <= MAX_TEXT, "the names of the encoded columns would be too long")
        encoder: Any = TableEncoder(**{**self.parameters, "dtype": getattr(np, str(self.parameters["dtype"]))})
        check_settings(encoder)
        encoder.features_, encoder.dropped_, encoder.n_features_in_ = features, self.dropped, len(features)
        encoder.group_encoder_ = None if self.groups is None else self.groups.build(weights)
        found = None if self.groups is None else self.groups.parameters.groups
        known = found == ("each" if encoder.encode_sensitive else None)
        need(known, "groups='each' are for encode_sensitive=True, and needed there")
        if self.feature_names_in is not None:
            encoder.feature_names_in_ = np.array(names, dtype=object)
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

    def build(self, weights: Weights) -> InvariantClassifier:
        """Return the fitted method; memory for weights is taken after they are known to be the network's."""
        shape, names, history = self.input_shape, self.feature_names_in, self.history
        need(len(shape) in (1, 3), f"input_shape {shape[:9]} is neither that of a row nor that of an image")
        need(names is None or len(names) == shape[0], f"{len(names or ())} feature names for {shape[0]} features")
        same = all(epoch.keys() == history[0].keys() for epoch in history)
        need(same, "the epochs of the history have different terms")
        found = self.best_epoch in [epoch.get("epoch") for epoch in history]
        need(found, f"the best epoch, {self.best_epoch}, is not in the history")
        model = with_settings(*of_today(self.name, self.settings))
        for name in ("input_shape", "input_dtype", "history", "best_epoch"):
            setattr(model, f"{name}_", getattr(self, name))
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model.n_features_in_, model.n_iter_ = shape[0], history[-1]["epoch"] + 1
        model.training_rows_, model.has_unlabelled_ = SeenRows(), False  # training asks for the latter
        model.training_rows_.fingerprint = self.fingerprint
        model.classes_ = self.classes.build()
        model.group_encoder_ = None if self.groups is None else self.groups.build(weights)
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
        return model.set_output(transform=self.output)


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
