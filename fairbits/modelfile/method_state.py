"""Fitted methods as plain values, and back."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import fairbits
from fairbits.encoding import GroupEncoder, SeenRows
from fairbits.errors import InputError
from fairbits.estimators import InvariantClassifier, check_settings
from fairbits.modelfile.encoder_schema import GroupsState
from fairbits.modelfile.error import ModelFileError
from fairbits.modelfile.schema import LabelState, MethodState

NOT_KEPT = ("device", "random_state", "verbose")  # of this machine and session; a seed would undo the randomness
ReadWeights = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # from tensors without numbers to those of the file


def method_state(model: Any) -> MethodState:
    """Return what is kept of a fitted method, but for its weights."""
    names = getattr(model, "feature_names_in_", None)
    return MethodState(
        kind="method",
        name=type(model).__name__,
        settings={name: plain(getattr(model, name)) for name in kept_settings(type(model))},
        input_shape=[int(size) for size in model.input_shape_],
        input_dtype=model.input_dtype_,
        feature_names_in=None if names is None else [str(name) for name in names],
        classes=label_state(model.classes_),
        groups=None if model.group_encoder_ is None else groups_state(model.group_encoder_),
        fingerprint=model.training_rows_.fingerprint,
        history=[{name: _number(value) for name, value in epoch.items()} for epoch in model.history_],
        best_epoch=model.best_epoch_,
        output=output_of(model),
    )


def restored_method(state: MethodState, read_weights: ReadWeights) -> InvariantClassifier:
    """Return the fitted method; no memory is taken for weights before they are known to be the network's."""
    model = _with_settings(state)
    model.input_shape_, model.n_features_in_ = tuple(state.input_shape), state.input_shape[0]
    model.input_dtype_ = state.input_dtype
    if state.feature_names_in is not None:
        model.feature_names_in_ = np.array(state.feature_names_in, dtype=object)
    model.classes_ = labels(state.classes)
    model.group_encoder_ = None if state.groups is None else restored_groups(state.groups)
    model.groups_ = [] if model.group_encoder_ is None else model.group_encoder_.names_
    model.training_rows_ = SeenRows.of_table(state.fingerprint)
    model.history_ = [{k: float(v) if isinstance(v, str) else v for k, v in epoch.items()} for epoch in state.history]
    model.best_epoch_, model.n_iter_ = state.best_epoch, model.history_[-1]["epoch"] + 1
    model.net_ = _network(model, read_weights)
    return set_output(model, state.output)


def _with_settings(state: MethodState) -> Any:
    """Return the method before its fit; a setting that the file does not know of yet has its default."""
    cls = known_method(state.name)
    if cls is None:
        raise InputError(f"the method {state.name[:80]!r} is unknown here; a newer fairbits may know it")
    unknown = sorted(set(state.settings) - set(kept_settings(cls)))
    if unknown:
        raise InputError(f"{state.name} has no setting {unknown[0][:80]!r} here; a newer fairbits may have it")
    model = cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in state.settings.items()})
    check_settings(model)
    return model


def _network(model: Any, read_weights: ReadWeights) -> nn.Module:
    """Build the network of shapes alone and put the weights into it; what only training needs is left out."""
    inputs = model.input_shape_ if len(model.input_shape_) == 3 else model.input_shape_[0]
    with torch.device("meta"):
        net = model.build(inputs, len(model.classes_))
    net.load_state_dict(read_weights(net.state_dict()), strict=True, assign=True)
    for module in net.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_meta:
                setattr(module, name, None)
    return net.eval().requires_grad_(False)


def known_method(name: str) -> Any:
    """Return one of fairbits' own methods by its public name, None for anything else: a file imports nothing."""
    found = getattr(fairbits, name) if name in fairbits.__all__ else None
    return found if isinstance(found, type) and issubclass(found, InvariantClassifier) else None


def kept_settings(cls: type) -> list[str]:
    """Return the names of the settings that a file keeps."""
    return [field.name for field in dataclasses.fields(cls) if field.name not in NOT_KEPT]


def plain(value: Any) -> Any:
    """Return a setting as Python's own numbers, texts and lists."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _number(value: float) -> Any:
    return value if math.isfinite(value) else str(value)


# ---------------------------------------------------------------------- labels and groups


def label_state(classes: np.ndarray) -> LabelState:
    """Return the classes as plain values, with the type of their array."""
    kind = classes.dtype.kind
    if kind not in "biufUO":
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved; fit with texts, numbers or booleans.")
    dtype: Any = {"U": "str", "O": "object"}.get(kind, classes.dtype.name)
    width = classes.dtype.itemsize // 4 if kind == "U" else 0
    return LabelState(dtype=dtype, width=width, values=[plain(value) for value in classes.tolist()])


def labels(state: LabelState) -> np.ndarray:
    """Return the classes as they were, if they are different and in order."""
    array = np.array(state.values, dtype=f"<U{state.width}" if state.dtype == "str" else state.dtype)
    if repr(array.tolist()) != repr(state.values):
        raise InputError(f"the labels {str(state.values)[:80]} are not of the type {state.dtype}")
    if not np.array_equal(np.unique(array), array):
        raise InputError(f"the labels {str(state.values)[:80]} are not in order, or some are the same")
    return array


def groups_state(encoder: GroupEncoder) -> GroupsState:
    """Return the groups of the sensitive columns."""
    state = encoder.state()
    state["parameters"] = {name: plain(value) for name, value in state["parameters"].items()}
    return GroupsState.model_validate({"kind": "groups", **state})


def restored_groups(state: GroupsState) -> GroupEncoder:
    return GroupEncoder.from_state(state.model_dump(exclude={"kind"}))


# ---------------------------------------------------------------------- scikit-learn's output containers


def output_of(model: Any) -> Any:
    """Return what `set_output` was told for this object, None if nothing."""
    return getattr(model, "_sklearn_output_config", {}).get("transform")


def set_output(model: Any, output: str | None) -> Any:
    return model if output is None else model.set_output(transform=output)
