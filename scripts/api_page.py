"""Write docs/api.md, the public names with their signatures and what their docstrings begin with.

Usage: python scripts/api_page.py
"""

import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
INTRO = """# The public names

Written by `python scripts/api_page.py` from the docstrings, which say more: `help(fairbits.certify)`. Of a
method its own settings are shown; its base has the others.
"""
MODULES = {  # in reading order; a name stands where it is first met
    "fairbits": "Methods, and what goes around them.",
    "fairbits.information": "What a code reveals, in bits: torch functions; `**weighing` are `weights=None`, "
    "`prior=None` and `n_groups=None`. [theory.md](theory.md) has the formulas.",
    "fairbits.metrics": "Scores of predictions; smaller is better, except for AUC and the objective.",
    "fairbits.datasets": "Shipped tables, images, populations of known truth: [datasets.md](datasets.md).",
    "fairbits.nn": "Torch modules.",
    "fairbits.estimators": "Bases and parts for a method of your own: [extending.md](extending.md).",
    "fairbits.certificate": "Parts of a certificate: [certificate.md](certificate.md).",
    "fairbits.auditing": "Parts of an audit.",
    "fairbits.lab.tuning": "A search for settings; `pip install 'fairbits[experiments]'`.",
    "fairbits.rivals": "Rules on posteriors, and other libraries' methods under the same calls; these need "
    "`pip install 'fairbits[compare]'`.",
}
LONGEST_DEFAULT, LONGEST_CALL = 16, 80


def page() -> str:
    """Return the page."""
    seen: set[int] = set()
    return "\n".join([INTRO, *(section(module, about, seen) for module, about in MODULES.items())])


def section(module: str, about: str, seen: set[int]) -> str:
    """Return a table of the classes and functions of a module that no module before it has."""
    rows = [row(thing) for thing in new_things(module, seen)]
    return "\n".join([f"## {module}", "", about, "", "| | |", "|---|---|", *rows, ""])


def new_things(module: str, seen: set[int]) -> list[Any]:
    """Return the classes and functions of a module that are not among those seen, and add them to these."""
    home = import_module(module)
    names = getattr(home, "__all__", [name for name, thing in vars(home).items() if not inspect.ismodule(thing)])
    things = [thing for name in sorted(names, key=str.lower) if hasattr(thing := getattr(home, name), "__name__")]
    found = [thing for thing in things if id(thing) not in seen]
    seen.update(map(id, things))
    return found


def row(thing: Any) -> str:
    """Return a line of the table: the call, and what it does."""
    about = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
    return f"| `{call(thing)}` | {about} |"


def call(thing: Any) -> str:
    """Return a name with its parameters, as many as fit; of a warning or an error the name alone."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return thing.__name__
    every = list(inspect.signature(thing).parameters.values())
    parts = [written(p) for p in every if p.name in own_names(thing)]
    shown = [part for i, part in enumerate(parts) if len(", ".join(parts[: i + 1])) <= LONGEST_CALL]
    rest = ["..."] * (len(shown) < len(every))
    first_named = [i for i, p in enumerate(every) if p.kind is p.KEYWORD_ONLY][:1]
    for i in first_named if first_named < [len(shown)] else ():
        shown.insert(i, "*")
    return f"{thing.__name__}({', '.join(shown + rest)})"


def own_names(thing: Any) -> set[str]:
    """Return the parameters worth showing: all, or of a method those that it declares or describes itself."""
    if dataclasses.is_dataclass(thing) and hasattr(thing, "fit"):
        described = re.findall(r"^    (\w+(?:, \w+)*) :", thing.__doc__, re.MULTILINE)
        return {*inspect.get_annotations(thing), *", ".join(described).split(", ")}
    return set(inspect.signature(thing).parameters)


def written(parameter: inspect.Parameter) -> str:
    """Return a parameter with its default, if that is short."""
    if parameter.default is parameter.empty:
        return "**" * (parameter.kind is parameter.VAR_KEYWORD) + parameter.name
    default = repr(parameter.default)
    return f"{parameter.name}={default if len(default) <= LONGEST_DEFAULT else '...'}"


if __name__ == "__main__":
    PAGE.write_text(page())
