"""What a run is: frozen settings, read from TOML, with a name made of all of them."""

import hashlib
import itertools
import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

HERE = resources.files("fairbits.experiments")
PLANS = HERE / "plans"
TABLES = ("compas", "adult", "bank")
Table = Literal["compas", "adult", "bank"]


class Settings(BaseModel):
    """Settings that never change and hold nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Range(Settings):
    """Where a number is searched."""

    low: float
    high: float
    log: bool = False


class Shape(Settings):
    """Which hidden layers are searched."""

    depth: tuple[int, int]
    width: tuple[int, int]


class Method(Settings):
    """An estimator with what is fixed and what is searched; `strength` is the setting that trades accuracy off."""

    estimator: str
    settings: dict[str, Any] = {}
    space: dict[str, Range | Shape | list[Any]] = {}
    strength: str = "gamma"


class Run(Settings):
    """What all runs have. `threads` is part of a run: sums in another order have other last digits."""

    of_search: ClassVar[tuple[str, ...]] = ()  # settings that leave the trials as they are
    kind: str
    name: str
    threads: int = 1

    @property
    def hash(self) -> str:
        """What identifies the run."""
        return self._hash(set())

    @property
    def trials_hash(self) -> str:
        """What identifies its trials: a search for more of them goes on from those there are."""
        return self._hash(set(self.of_search))

    def _hash(self, without: set[str]) -> str:
        text = json.dumps(self.model_dump(mode="json", exclude=without), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Reference(Run):
    """A predictor that every table shows: "constant" or "logistic regression"."""

    kind: Literal["reference"]
    name: Literal["constant", "logistic regression"]
    dataset: Table
    fold: int
    folds: int = 3
    seed: int = 0


class Search(Run):
    """The paper's protocol for one external fold: tune on its training rows, evaluate the best on its test rows."""

    of_search: ClassVar[tuple[str, ...]] = ("trials", "trees")
    kind: Literal["search"]
    dataset: Table
    method: Method
    fold: int
    folds: int = 3
    inner_folds: int = 3
    seed: int = 0
    trials: int = Field(200, ge=1)
    trials_at_once: int = Field(8, ge=1)
    sampler: Literal["tpe", "gp"] = "tpe"
    objective: Literal["paper", "pareto"] = "paper"
    prune: bool = True
    trees: int = Field(1000, ge=1)  # of the forest that predicts S from the representation


class Strengths(Run):
    """One method over many strengths on all folds, other settings fixed; `depth` counts hidden layers."""

    kind: Literal["strengths"]
    dataset: Table
    method: Method
    values: list[float]
    selection: str = "objective"  # the paper's rule keeps epochs that predict nearly the same for everybody
    depth: int = 1
    folds: int = 3
    fold_seed: int = 0
    seed: int = 0


class Plane(Run):
    """What the code tells about x, y and s, epoch by epoch."""

    kind: Literal["plane"]
    dataset: Table
    method: Method
    gamma: float
    epochs: int = 100
    seed: int = 0


class Images(Run):
    """Biased-MNIST: one fit, scored on colours that tell nothing."""

    kind: Literal["images"]
    rho: float
    method: Method
    epochs: int = 10
    seed: int = 0


KINDS: dict[str, type[Run]] = {
    "reference": Reference,
    "search": Search,
    "strengths": Strengths,
    "plane": Plane,
    "images": Images,
}
AnyRun = Annotated[Reference | Search | Strengths | Plane | Images, Field(discriminator="kind")]
RUN: TypeAdapter[Any] = TypeAdapter(AnyRun)


class Plan(Settings):
    """Runs that belong together."""

    title: str
    runs: list[AnyRun]


def shipped_plans() -> list[str]:
    """Return the names of the plans inside the package."""
    return sorted(file.name.removesuffix(".toml") for file in PLANS.iterdir() if file.name.endswith(".toml"))


def read_plan(source: str | Path, *, quick: bool = False, changes: dict[str, Any] | None = None) -> Plan:
    """Return a plan shipped with fairbits by its name, or that of a TOML file.

    Every list in an entry of `runs` whose setting takes a single value stands for one run each; `method` names an
    entry of `methods`, those of the file or the shipped ones; `defaults` hold for all runs that know the setting, and
    with `quick` so does the table of that name. `include` names plans whose runs belong to this one too.

    Parameters
    ----------
    changes : settings that replace those of every run that knows them
    """
    text = _text(source)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} is no TOML: {error}.") from None
    methods = _methods(content.get("methods", {}))
    try:
        entries = [dict(entry) for entry in content.get("runs", [])]
        laid_over = {**(content.get("quick", {}) if quick else {}), **(changes or {})}
        defaults = content.get("defaults", {})
        runs = [run for entry in entries for run in _expand(entry, defaults, laid_over, methods)]
        parts = [read_plan(name, quick=quick, changes=changes) for name in content.get("include", [])]
        return Plan(title=content["title"], runs=[*runs, *(run for part in parts for run in part.runs)])
    except KeyError as error:
        raise ValueError(f"{source} has no {error}; a plan has a title and [[runs]].") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{source}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _methods(own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the shipped methods of tables and of images, with what their families share, and those of a plan."""
    families = tomllib.loads((HERE / "methods.toml").read_text())
    found = {}
    for family, shared in families.items():
        empty: dict[str, Any] = {}
        found[family] = {
            name: {**m, **{k: shared.get(k, empty) | m.get(k, empty) for k in ("settings", "space")}}
            for name, m in shared["methods"].items()
        } | own
    return {"tables": found["tables"] | found["others"], "images": found["images"]}


def _text(source: str | Path) -> str:
    if str(source) in shipped_plans():
        return (PLANS / f"{source}.toml").read_text()
    file = Path(source)
    if file.suffix != ".toml":
        raise ValueError(f"{str(source)!r} is no experiment: use one of {', '.join(shipped_plans())}, or a .toml file.")
    if not file.is_file():
        raise ValueError(f"There is no file {source}.")
    return file.read_text()


def _expand(entry: dict[str, Any], defaults: dict[str, Any], changes: dict[str, Any], methods: dict[str, Any]) -> list:
    kind = KINDS.get(entry.get("kind", ""))
    if kind is None:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(f"kind={entry.get('kind')!r} is no kind of run: use one of {kinds}.")
    known = set(kind.model_fields) | {"method"}
    entry = {k: v for k, v in defaults.items() if k in known} | entry
    entry |= {k: v for k, v in changes.items() if k in known}
    several = {k: v for k, v in entry.items() if isinstance(v, list) and k != "values"}
    combinations = itertools.product(*several.values())
    return [_run({**entry, **dict(zip(several, values, strict=True))}, kind, methods) for values in combinations]


def _run(entry: dict[str, Any], kind: type[Run], methods: dict[str, Any]) -> Run:
    name = entry.pop("method", None)
    if "method" not in kind.model_fields:
        return kind(**entry, name=name)
    methods = methods["images" if kind is Images else "tables"]
    if name not in methods:
        raise ValueError(f"method={name!r} is none of {', '.join(map(repr, methods))}.")
    return kind(**{**entry, "name": name, "method": methods[name]})
