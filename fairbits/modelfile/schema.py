"""What model.json may hold, and nothing else: names, types, limits, and sizes that fit each other."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairbits.errors import InputError
from fairbits.modelfile.encoder_schema import Count, GroupsState, Output, Size, State, TableState

MAX_LAYERS = 256
MAX_LABELS = 2**22  # characters of all labels
MAX_CELLS = 2**15  # sensitive columns times classes: training may keep a part of the network for each

Whole = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Share = Annotated[float, Field(gt=0, lt=1)]
Gamma = Annotated[int | float, Field(ge=0, le=1)]
Scalar = bool | Whole | float | str
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class LabelState(State):
    """The classes: plain values and the numpy type of their array."""

    dtype: Literal[
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "str", "object",
    ]  # fmt: skip
    width: Annotated[int, Field(ge=0, le=2**16)]  # characters of a "str"
    values: Annotated[list[Scalar], Field(min_length=2)]

    @model_validator(mode="after")
    def _check(self) -> "LabelState":
        if self.width * len(self.values) > MAX_LABELS:
            raise InputError(f"{len(self.values)} labels of {self.width} characters are too many")
        return self


class MethodState(State):
    """A fitted method, but for its weights."""

    kind: Literal["method"]
    name: str
    settings: dict[str, Scalar | Annotated[list[Size], Field(max_length=MAX_LAYERS)] | None]
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
    def _check(self) -> "MethodState":
        if len(self.input_shape) not in (1, 3):
            raise InputError(f"input_shape {self.input_shape[:9]} is neither that of a row nor that of an image")
        if self.feature_names_in is not None and len(self.feature_names_in) != self.input_shape[0]:
            raise InputError(f"{len(self.feature_names_in)} feature names for {self.input_shape[0]} features")
        if self.groups is not None and len(self.groups.sizes) * len(self.classes.values) > MAX_CELLS:
            raise InputError(f"{len(self.classes.values)} classes and {len(self.groups.sizes)} columns are too many")
        if any(epoch.keys() != self.history[0].keys() for epoch in self.history):
            raise InputError("the epochs of the history have different terms")
        if self.best_epoch not in [epoch.get("epoch") for epoch in self.history]:
            raise InputError(f"the best epoch, {self.best_epoch}, is not in the history")
        return self


class StepState(State):
    name: Annotated[str, Field(min_length=1)]
    model: Annotated[TableState | MethodState, Field(discriminator="kind")]


class PipelineState(State):
    """A pipeline of table encoders that ends in a method."""

    kind: Literal["pipeline"]
    steps: Annotated[list[StepState], Field(min_length=1, max_length=16)]

    @model_validator(mode="after")
    def _check(self) -> "PipelineState":
        kinds = [step.model.kind for step in self.steps]
        if kinds != ["table"] * (len(kinds) - 1) + ["method"]:
            raise InputError(f"a pipeline of {kinds} is not of table encoders and a method at the end")
        names = {step.name for step in self.steps}
        if len(names) < len(self.steps) or any("__" in name for name in names):
            raise InputError("the names of the steps must differ and hold no '__'")
        return self


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
    total_variation: Annotated[float, Field(ge=0, le=1)]
    balanced_accuracy: Annotated[float, Field(ge=0, le=1)]
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
    def _check(self) -> "CertificateState":
        if all(b.label is not None for b in self.bounds):
            raise InputError("a certificate needs a bound among all rows")
        return self


class TemplateState(State):
    """In what the estimator that a certified classifier was given differs from the model it chose."""

    step: str | None  # the name of the method in the pipeline
    gamma: Gamma


class CertifiedState(State):
    """A fitted `CertifiedClassifier`: its settings, the model it chose, and what is proved about that."""

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


ModelState = Annotated[
    MethodState | PipelineState | CertifiedState | TableState | GroupsState, Field(discriminator="kind")
]


class FileState(State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: ModelState
