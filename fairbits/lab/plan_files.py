"""Plans of runs, read from TOML."""

import itertools
import tomllib
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairbits.errors import InputError
from fairbits.lab.run_settings import KINDS, Images, Plan, Refit, Run

HERE = resources.files("fairbits.lab")
PLANS = HERE / "plans"


def shipped_plans() -> list[str]:
    """Return the names of the plans inside the package."""
    return sorted(file.name.removesuffix(".toml") for file in PLANS.iterdir() if file.name.endswith(".toml"))


def read_plan(
    source: str | Path,
    *,
    quick: bool = False,
    changes: dict[str, Any] | None = None,
    records: Iterable[dict[str, Any]] = (),
    within: tuple[Path, ...] = (),
) -> Plan:
    """Return a plan shipped with fairbits by its name, or that of a TOML file.

    In an entry of `runs`, a list for a setting that takes a single value makes one run per value. `method` names an
    entry of `methods`, of the file or shipped. `defaults` apply to all runs that have the setting, and so does the
    table `quick` with `quick`. `include` names plans whose runs are added. A run of kind "refit" takes its settings
    from the searches among the `records` with `origin = "searched"`, the paper's with `origin = "paper"`. `order` names
    settings by which the runs are sorted.

    Parameters
    ----------
    changes : settings that replace those of every run that has them
    records : of searches, whose choices are fitted again
    within : plans that include this one
    """
    file = Path(source).resolve()
    if file in within:
        raise InputError(f"{source} includes itself.")
    try:
        content = tomllib.loads(_text(source))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source} is not valid TOML: {error}.") from None
    entries = _entries(content, source)
    methods = _methods(content.get("methods", {}))
    try:
        laid_over = {**(content.get("quick", {}) if quick else {}), **(changes or {})}
        layers, records = (content.get("defaults", {}), laid_over, methods), list(records)
        runs = [run for e in entries for run in _expand(e, *layers, records)]
        for name in content.get("include", []):
            more: dict[str, Any] = {"quick": quick, "changes": changes, "records": records}
            runs += read_plan(name, **more, within=(*within, file)).runs
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{place}: " for place in first["loc"])
        raise InputError(f"{source}: {where}{first['msg'].removeprefix('Value error, ')}") from None
    if not runs and not any(entry.get("origin") == "searched" for entry in entries):
        raise InputError(f"{source} has no runs; a plan has a title and [[runs]].")
    runs.sort(key=lambda run: [getattr(run, name) for name in content.get("order", [])])
    return Plan(title=str(content["title"]), runs=runs)


def _text(source: str | Path) -> str:
    if str(source) in shipped_plans():
        return (PLANS / f"{source}.toml").read_text()
    file = Path(source)
    if file.suffix != ".toml":
        raise InputError(f"{str(source)!r} is not a plan: use one of {', '.join(shipped_plans())}, or a .toml file.")
    if not file.is_file():
        raise InputError(f"There is no file {source}.")
    return file.read_text(encoding="utf-8")


def _entries(content: dict[str, Any], source: str | Path) -> list[dict[str, Any]]:
    """Return the entries of `runs`; raise an error for anything in the file that would have no effect."""
    if "title" not in content:
        raise InputError(f"{source} has no 'title'; a plan has a title and [[runs]].")
    tables, entries = ("defaults", "quick", "methods"), content.get("runs", [])
    unknown = set(content) - {"title", "include", "order", "runs", *tables}
    if unknown:
        parts = ", ".join(("title", "include", "order", "runs", *tables))
        raise InputError(f"{source} has {sorted(unknown)}; a plan has {parts}.")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{source}: each run is written as [[runs]], in two brackets.")
    if not all(isinstance(content.get(name, {}), dict) for name in tables):
        raise InputError(f"{source}: {', '.join(tables)} are tables of names and values, such as {{ trials = 8 }}.")
    known = {"method", *(name for e in entries for name in _kind(e).model_fields)}
    order = content.get("order", [])
    if not isinstance(order, list) or not all(name in _kind(e).model_fields for name in order for e in entries):
        raise InputError(f"{source}: order lists names of settings that all runs have; got {order!r}.")
    for name in ("defaults", "quick"):
        if other := set(content.get(name, {})) - known:
            raise InputError(f"{source}: {name} has {sorted(other)}, which none of its runs has.")
    return entries


def _methods(own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the methods for tables and for images: the shipped ones, with what their families share, and a plan's."""
    found = {}
    for family, shared in tomllib.loads((HERE / "methods.toml").read_text()).items():
        found[family] = {
            name: method | {part: shared.get(part, {}) | method.get(part, {}) for part in ("settings", "space")}
            for name, method in shared["methods"].items()
        } | own
    images = found.pop("images")
    return {"tables": {name: method for own in found.values() for name, method in own.items()}, "images": images}


def _kind(entry: dict[str, Any]) -> type[Run]:
    name = entry.get("kind")
    if name not in KINDS:
        raise InputError(f"kind={name!r} is not a kind of run: use one of {', '.join(map(repr, KINDS))}.")
    return KINDS[name]


def _expand(
    entry: dict[str, Any],
    defaults: dict[str, Any],
    changes: dict[str, Any],
    methods: dict[str, Any],
    records: list[dict[str, Any]],
) -> list[Any]:
    kind = _kind(entry)
    if "name" in entry:
        raise InputError("is not for plans.", argument="name", value=entry["name"], remedy="Write method = instead.")
    known = {"method", *kind.model_fields}
    entry = {k: v for k, v in (defaults | entry | changes).items() if k in known or k in entry}
    several = {k: v for k, v in entry.items() if isinstance(v, list) and k != "values"}
    found = [entry | dict(zip(several, values, strict=True)) for values in itertools.product(*several.values())]
    if entry.get("origin") == "searched":
        return [Refit(**facts) for one in found for facts in _searched(one, records)]
    return [_run(one, kind, methods) for one in found]


def _searched(entry: dict[str, Any], records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the settings that searches chose, each with an entry that may name a method, a dataset and a fold."""
    names = {"method": "name", "dataset": "dataset", "fold": "fold"}
    wanted = {names[name]: entry[name] for name in names if name in entry}
    for run, best in ((r["run"], r["result"]["best"]) for r in records if r["run"]["kind"] == "search"):
        if all(run[name] == value for name, value in wanted.items()):
            own = {name: run[name] for name in ("name", "method", "dataset", "fold", "folds")}
            own |= {"settings": best, "fold_seed": run["seed"], "objective": run["objective"]}
            yield entry | own


def _run(entry: dict[str, Any], kind: type[Run], methods: dict[str, Any]) -> Run:
    name = entry.pop("method", None)
    if "method" not in kind.model_fields:
        return kind(**entry, name=name)
    methods = methods["images" if kind is Images or entry.get("dataset") == "biased-mnist" else "tables"]
    if name not in methods:
        raise InputError(f"is not one of {', '.join(map(repr, methods))}.", argument="method", value=name)
    if entry.get("origin") == "paper":
        entry["settings"] = _papers(name, entry["dataset"])
    return kind(**entry, **{"name": name, "method": methods[name]})


def _papers(method: str, dataset: str) -> dict[str, Any]:
    """Return the paper's settings for a method, of which the name may say more after a comma."""
    published = tomllib.loads((HERE / "paper" / "published.toml").read_text())["best_settings"]
    return published[dataset][method.partition(",")[0]]
