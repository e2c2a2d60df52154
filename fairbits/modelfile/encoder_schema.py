"""What model.json may hold of encoders: names, types, limits, and sizes that fit each other."""

from itertools import pairwise
from math import prod
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairbits.errors import InputError

MAX_COLUMNS = 64  # sensitive columns
MAX_TEXT = 2**25  # characters of all names that are made of others: a long one times many

Count = Annotated[int, Field(ge=0, lt=2**53)]
Size = Annotated[int, Field(ge=1, lt=2**53)]
Output = Literal["default", "pandas", "polars"] | None  # of scikit-learn's set_output


class State(BaseModel):
    """A part of the file: no other keys, no other types, finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


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
    max_categories: Annotated[int, Field(ge=2, lt=2**53)]
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
    def _check(self) -> "TableState":
        names = self.feature_names_in
        if names is None:
            names = [f"x{i}" for i in range(len(self.features))]
        if len(names) != len(self.features):
            raise InputError(f"{len(names)} feature names for {len(self.features)} features")
        if {name for name, f in zip(names, self.features, strict=True) if f is None} != set(self.dropped):
            raise InputError("the dropped columns are not those without a feature")
        widths = [len(f.categories) + 2 if isinstance(f, CategoryState) else 2 for f in self.features]
        if sum(len(name) * width for name, width in zip(names, widths, strict=True)) > MAX_TEXT:
            raise InputError("the names of the encoded columns would be too long")
        return self


class GroupParameters(State):
    groups: Literal["intersection", "each"]
    n_bins: Annotated[int, Field(ge=2, lt=2**53)]
    max_values: Annotated[int, Field(ge=2, lt=2**53)]
    min_group_size: Size


class LevelState(State):
    """A sensitive column: its labels, and the edges of its bins."""

    name: str
    labels: Annotated[list[str], Field(min_length=1)]
    edges: list[float] | None

    @model_validator(mode="after")
    def _check(self) -> "LevelState":
        if len(set(self.labels)) < len(self.labels):
            raise InputError(f"two labels of the sensitive column {self.name[:40]!r} are the same")
        edges = self.edges
        if edges is not None and (len(edges) != len(self.labels) + 1 or any(a > b for a, b in pairwise(edges))):
            raise InputError(f"the edges of the sensitive column {self.name[:40]!r} do not rise around its bins")
        return self


class GroupsState(State):
    """A fitted `GroupEncoder`."""

    kind: Literal["groups"]
    parameters: GroupParameters
    levels: Annotated[list[LevelState], Field(min_length=1, max_length=MAX_COLUMNS)]
    cells: list[Count] | None
    sizes: list[list[Count]]

    @model_validator(mode="after")
    def _check(self) -> "GroupsState":
        shape = [len(level.labels) for level in self.levels]
        if len({level.name for level in self.levels}) < len(self.levels):
            raise InputError("two sensitive columns have the same name")
        if (self.cells is None) != (self.parameters.groups == "each"):
            raise InputError("cells are for groups='intersection', and needed there")
        expected = shape if self.cells is None else [self._crossed(self.cells, shape)]
        if [len(sizes) for sizes in self.sizes] != expected or min(expected) < 2:
            raise InputError(f"group sizes {[len(s) for s in self.sizes][:9]} for columns of {expected[:9]} groups")
        return self

    def _crossed(self, cells: list[int], shape: list[int]) -> int:
        """Return how many combinations there are, if their numbers rise within limits and their names can be made."""
        if not cells or cells[-1] >= prod(shape) or any(a >= b for a, b in pairwise(cells)):
            raise InputError("the cells are not numbers of combinations in rising order")
        if len(shape) == 1 and len(cells) != shape[0]:
            raise InputError(f"{len(cells)} cells for a column of {shape[0]} groups")
        longest = sum(len(level.name) + max(map(len, level.labels)) + 6 for level in self.levels)
        if prod(shape) >= 2**63 or len(cells) * longest > MAX_TEXT:
            raise InputError("the names of the crossed groups would be too long")
        return len(cells)
