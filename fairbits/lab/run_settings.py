"""What a run is: frozen settings, identified by their hash."""

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairbits.errors import InputError

Table = Literal["compas", "adult", "bank"]


def later(default: Any, **limits: Any) -> Any:
    """Declare a setting that came after records were published: at its default it is no part of the record or hash."""
    return Field(default, exclude_if=lambda value: value == default, **limits)


class Settings(BaseModel):
    """Settings that never change and hold nothing unknown; their hash identifies them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def hash(self) -> str:
        """What identifies the settings."""
        return self.hash_without()

    def hash_without(self, *names: str) -> str:
        """Return the hash of all settings but these."""
        text = json.dumps(self.model_dump(mode="json", exclude=set(names)), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Range(Settings):
    """The range of a number that is searched."""

    low: float
    high: float
    log: bool = False


class Shape(Settings):
    """The ranges of hidden layers that are searched."""

    depth: tuple[int, int]
    width: tuple[int, int]


class Method(Settings):
    """An estimator, its fixed settings and its search space; `strength` is the setting that trades accuracy off."""

    estimator: str
    settings: dict[str, Any] = {}
    space: dict[str, Range | Shape | list[Any]] = {}
    strength: str = "gamma"
    sees_groups: bool = later(False)  # whether its columns include S, as they do for AdvCls as published


class Run(Settings):
    """What all runs have. `threads` is part of a run because the order of sums changes the last digits."""

    of_search: ClassVar[tuple[str, ...]] = ()  # settings that do not change the trials
    kind: str
    name: str
    threads: int = Field(1, ge=1)
    seed: int = 0

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        fold, folds = getattr(self, "fold", 0), getattr(self, "folds", 2)
        if fold >= folds:
            raise InputError(f"is not one of the {folds} folds, which are counted from 0.", argument="fold", value=fold)
        if getattr(self, "sampler", "tpe") == "gp" and getattr(self, "trials_at_once", 1) > 1:
            raise InputError(
                "takes one trial at a time.", argument="sampler", value="gp", remedy="Set trials_at_once=1."
            )
        return self

    @property
    def trials_hash(self) -> str:
        """What identifies its trials: a search for more of them resumes those there are."""
        return self.hash_without(*self.of_search)


class Reference(Run):
    """A predictor that every table shows: "constant" or "logistic regression"."""

    kind: Literal["reference"]
    name: Literal["constant", "logistic regression"]
    dataset: Table
    fold: int = Field(ge=0)
    folds: int = Field(3, ge=2)
    trees: int = Field(1000, ge=1)


class Search(Run):
    """The paper's protocol for one external fold: tune on its training rows, evaluate the best on its test rows."""

    of_search: ClassVar[tuple[str, ...]] = ("trials", "trees")
    kind: Literal["search"]
    dataset: Table
    method: Method
    fold: int = Field(ge=0)
    folds: int = Field(3, ge=2)
    inner_folds: int = Field(3, ge=2)
    trials: int = Field(200, ge=1)
    trials_at_once: int = Field(8, ge=1)
    sampler: Literal["tpe", "gp"] = "tpe"
    objective: Literal["paper", "pareto", "constrained"] = "paper"
    leakage: str = later("gpa")  # what the other two objectives look at beside the AUC
    max_leakage: float | None = later(None)
    prune: bool = True
    mixed: bool = later(False)  # architectures within a batch
    halving: bool = later(False)  # successive halving in place of the median
    common: bool = later(False)  # as for `Strengths`
    trees: int = Field(1000, ge=1)  # of the forest that predicts S from the representation


class Refit(Run):
    """One fit on an external fold with known settings, named as a search names them, and `origin` says whose.

    Seeds do not depend on the method: all methods share the folds, the batches and, as far as they have the same
    layers, the initial weights.
    """

    kind: Literal["refit"]
    dataset: Table
    method: Method
    origin: Literal["searched", "paper", "own"] = "own"
    settings: dict[str, Any]
    objective: str = later("paper")  # of the search that chose them
    fold: int = Field(ge=0)
    folds: int = Field(3, ge=2)
    fold_seed: int = 0
    trees: int = Field(1000, ge=0)  # 0: no forests


class Strengths(Run):
    """One method over many strengths on all folds, other settings fixed; `depth` counts hidden layers."""

    kind: Literal["strengths"]
    dataset: Table
    method: Method
    values: list[float] = Field(min_length=1)
    selection: str = "objective"  # the paper's rule keeps epochs whose predictions are nearly constant
    depth: int = Field(1, ge=1)
    folds: int = Field(3, ge=2)
    fold_seed: int = 0
    common: bool = later(False)  # seeds that do not depend on the method, see `Refit`


class Plane(Run):
    """The information of the code about x, y and s, epoch by epoch.

    On a table it is measured on the validation rows; of Biased-MNIST on training digits left out, in random colours.
    """

    kind: Literal["plane"]
    dataset: Table | Literal["biased-mnist"]
    method: Method
    gamma: float
    epochs: int = Field(100, ge=1)
    common: bool = later(False)  # as for `Strengths`
    rho: float = later(0.99)  # of the digits


class Images(Run):
    """Biased-MNIST: one fit, scored on images whose colour is random.

    With `held_out`, so many training digits are left out of the fit, recoloured at random and scored instead of the
    test images: what settings may be chosen by.
    """

    kind: Literal["images"]
    rho: float
    method: Method
    epochs: int = Field(10, ge=1)
    held_out: int = later(0, ge=0, le=50_000)


class Domain(Run):
    """Domain adaptation over strengths, with the labels of one domain alone."""

    kind: Literal["domain"]
    experiment: Literal["biased digits", "other colours", "adult"]
    method: Method
    values: list[float] = []
    labels: Literal["source", "target"] = "source"
    epochs: int = Field(100, ge=1)


class Arena(Run):
    """One method over its strengths on one split: what it releases, certified by the same rows as every other's."""

    kind: Literal["arena"]
    dataset: Literal["adult", "adult-crossed", "bank", "compas"]
    method: Method
    inputs: Literal["table", "columns", "log-ratios", "probabilities"] = "columns"
    values: list[float] = []


_KINDS: tuple[type[Run], ...] = (Reference, Search, Refit, Strengths, Plane, Images, Domain, Arena)
KINDS = {kind.__name__.lower(): kind for kind in _KINDS}
AnyRun = Annotated[
    Reference | Search | Refit | Strengths | Plane | Images | Domain | Arena, Field(discriminator="kind")
]
RUN: TypeAdapter[Any] = TypeAdapter(AnyRun)


class Plan(Settings):
    """Runs that belong together."""

    title: str
    runs: list[AnyRun]
