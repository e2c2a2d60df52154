"""What model.json holds of encoders and labels: each class checks it, describes an object (`of`), builds it (`build`).

The checks limit names, types and sizes, so that a few bytes in a file cannot ask for much memory.
"""

import dataclasses
import math
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.modelfile.sealed_files import Count, ModelFileError, Size, State, need

MAX_COLUMNS = 64  # sensitive columns
MAX_TEXT = 2**25  # characters of all names that are made of other names: a long one times many
MAX_LABELS = 2**22  # characters of all labels
NOT_KEPT = ("device", "random_state", "verbose")  # settings of this machine and session; a seed would undo the noise

AtLeast2 = Annotated[int, Field(ge=2, lt=2**53)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Scalar = bool | Whole | float | str
Output = Literal["default", "pandas", "polars"] | None  # of scikit-learn's set_output


def plain(value: Any) -> Any:
    """Return Python's own numbers, texts, lists and dicts for those of numpy, tuples and dataclasses.

    >>> plain({"sizes": (np.int64(3), 4), "rate": np.float64(0.5)})
    {'sizes': [3, 4], 'rate': 0.5}
    """
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in NOT_KEPT}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def output_of(model: Any) -> Any:
    """Return what was passed to `set_output` of this object, None if nothing."""
    return getattr(model, "_sklearn_output_config", {}).get("transform")


def with_output(model: Any, output: str | None) -> Any:
    """Return the model after `set_output`, if that was called."""
    return model if output is None else model.set_output(transform=output)


class NumberState(State):
    kind: Literal["number", "date"]
    center: float
    scale: Annotated[float, Field(ge=0)]
    fill: float
    indicator: bool


class CategoryState(State):
    kind: Literal["category"]
    categories: list[str]
    other: bool
    missing: bool


FeatureState = Annotated[NumberState | CategoryState, Field(discriminator="kind")]


class TableParameters(State):
    max_categories: AtLeast2
    impute: Literal["mean", "median"]
    identifier_share: Annotated[float, Field(gt=0, le=1)] | None
    dtype: Literal["float32", "float64"]


class TableState(State):
    """A fitted `TableEncoder`."""

    kind: Literal["table"]
    parameters: TableParameters
    feature_names_in: list[str] | None
    features: Annotated[list[FeatureState | None], Field(min_length=1)]
    dropped: dict[str, str]
    output: Output

    @model_validator(mode="after")
    def _check(self) -> Self:
        names, features = self.feature_names_in, self.features
        names = [f"x{i}" for i in range(len(features))] if names is None else names
        need(len(names) == len(features), f"{len(names)} feature names for {len(features)} features")
        without = {name for name, feature in zip(names, features, strict=True) if feature is None}
        need(without == set(self.dropped), "the dropped columns are not those without a feature")
        widths = [len(f.categories) + 2 if isinstance(f, CategoryState) else 2 for f in features]
        length = sum(len(name) * width for name, width in zip(names, widths, strict=True))
        need(length <= MAX_TEXT, "the names of the encoded columns would be too long")
        return self

    @classmethod
    def of(cls, encoder: TableEncoder) -> Self:
        return cls.model_validate(plain({"kind": "table", **encoder.state(), "output": output_of(encoder)}))

    def build(self, _: Any) -> TableEncoder:
        return with_output(TableEncoder.from_state(self.model_dump(exclude={"kind", "output"})), self.output)


class GroupParameters(State):
    groups: Literal["intersection", "each"]
    n_bins: AtLeast2
    max_values: AtLeast2
    min_group_size: Size


class LevelState(State):
    """A sensitive column: its labels, and the edges of its bins."""

    name: str
    labels: Annotated[list[str], Field(min_length=1)]
    edges: list[float] | None

    @model_validator(mode="after")
    def _check(self) -> Self:
        column, edges, n = f"the sensitive column {self.name[:40]!r}", self.edges, len(self.labels)
        need(len(set(self.labels)) == n, f"two labels of {column} are the same")
        rising = edges is None or (len(edges) == n + 1 and all(a <= b for a, b in pairwise(edges)))
        need(rising, f"the edges of {column} do not rise around its bins")
        return self


class GroupsState(State):
    """A fitted `GroupEncoder`."""

    kind: Literal["groups"]
    parameters: GroupParameters
    levels: Annotated[list[LevelState], Field(min_length=1, max_length=MAX_COLUMNS)]
    cells: list[Count] | None
    sizes: list[list[Count]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        shape, cells = [len(level.labels) for level in self.levels], self.cells
        need(len({level.name for level in self.levels}) == len(shape), "two sensitive columns have the same name")
        crossed = self.parameters.groups == "intersection"
        need((cells is not None) == crossed, "cells are for groups='intersection', and needed there")
        if cells is not None:
            combinations = math.prod(shape)
            rising = cells and cells[-1] < combinations and all(a < b for a, b in pairwise(cells))
            need(bool(rising), "the cells are not numbers of combinations in rising order")
            need(len(shape) > 1 or len(cells) == shape[0], f"{len(cells)} cells for a column of {shape[0]} groups")
            longest = sum(len(level.name) + max(map(len, level.labels)) + 6 for level in self.levels)
            short = combinations < 2**63 and len(cells) * longest <= MAX_TEXT
            need(short, "the names of the crossed groups would be too long")
            shape = [len(cells)]
        sizes = [len(sizes) for sizes in self.sizes]
        need(sizes == shape and min(shape) > 1, f"group sizes {sizes[:9]} for columns of {shape[:9]} groups")
        return self

    @classmethod
    def of(cls, encoder: GroupEncoder) -> Self:
        return cls.model_validate(plain({"kind": "groups", **encoder.state()}))

    def build(self, _: Any = None) -> GroupEncoder:
        return GroupEncoder.from_state(self.model_dump(exclude={"kind"}))


class LabelState(State):
    """The classes: plain values and the numpy type of their array."""

    dtype: Literal[
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "str", "object",
    ]  # fmt: skip
    width: Annotated[int, Field(ge=0, le=2**16)]  # characters of a "str"
    values: Annotated[list[Scalar], Field(min_length=2)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        n = len(self.values)
        need(self.width * n <= MAX_LABELS, f"{n} labels of {self.width} characters are too many")
        return self

    @classmethod
    def of(cls, classes: np.ndarray) -> Self:
        kind = classes.dtype.kind
        if kind not in "biufUO":
            problem = f"Labels of type {classes.dtype} cannot be saved."
            raise ModelFileError(problem, remedy="Fit with texts, numbers or booleans.")
        dtype: Any = {"U": "str", "O": "object"}.get(kind, classes.dtype.name)
        width = classes.dtype.itemsize // 4 if kind == "U" else 0
        return cls(dtype=dtype, width=width, values=plain(classes.tolist()))

    def build(self) -> np.ndarray:
        array = np.array(self.values, dtype=f"<U{self.width}" if self.dtype == "str" else self.dtype)
        labels = f"the labels {str(self.values)[:80]}"
        need(repr(array.tolist()) == repr(self.values), f"{labels} are not of the type {self.dtype}")
        need(np.array_equal(np.unique(array), array), f"{labels} are not in order, or some are the same")
        return array
