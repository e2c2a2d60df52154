"""Errors and warnings in the words of the command line: columns and options in place of Python's parameters."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = tomllib.loads((Path(__file__).parent / "sentences.toml").read_text(encoding="utf-8"))
PYTHON = re.compile(r"\b\w+=|\w\(|\b[a-z]+_[a-z_]+\b")  # a remedy in Python's words helps nobody on the command line
REMEDIES: dict[str, str | Callable[[Any], str]] = {
    **WORDS["remedies"],
    "OtherPeopleError": lambda e: f"Pass --person {','.join(e.people)}." if e.people else "Leave --person out.",
}


def worded(error: Any) -> str:
    """Return what an error or a warning says, with the remedy that the command line has for it.

    >>> from fairbits.errors import InputError
    >>> worded(InputError("must lie between 0 and 1.", argument="max_disparity", value=2, remedy="Pass alpha=0.1."))
    '--max-disparity 2 must lie between 0 and 1.'
    """
    name, about = error.argument or "", ""
    if name in WORDS["data"]:
        about = WORDS["data"][name]
    elif name:
        value = f"{error.value:g}" if isinstance(error.value, float) else error.value
        about = f"{WORDS['options'].get(name, '--' + name.replace('_', '-'))} {value}"
    remedy = REMEDIES.get(type(error).__name__, "" if PYTHON.search(error.remedy) else error.remedy)
    return f"{about} {error.problem} {remedy(error) if callable(remedy) else remedy}".strip()
