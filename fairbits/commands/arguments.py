"""Arguments: lists with commas, what the shell may complete, and help in paragraphs."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHIPPED = ("compas", "adult", "bank")
FETCHED = ("mnist",)


def names(text: str | None) -> list[str]:
    """Return the names in a text with commas between.

    >>> names("sex, race"), names(None)
    (['sex', 'race'], [])
    """
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def paragraphs(command: Callable[..., Any]) -> str:
    """Return the docstring of a command, a line per paragraph: typer would keep the lines of the source."""
    text = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def complete_table(incomplete: str) -> list[str]:
    """Return the shipped tables and the files that begin like this."""
    return [name for name in SHIPPED if name.startswith(incomplete)] + _paths(incomplete)


def complete_model(incomplete: str) -> list[str]:
    """Return the folders that begin like this."""
    return [path for path in _paths(incomplete) if path.endswith("/")]


def complete_data(incomplete: str) -> list[str]:
    """Return the names of `fairbits data fetch`."""
    return [name for name in (*SHIPPED, *FETCHED) if name.startswith(incomplete)]


def _paths(incomplete: str) -> list[str]:
    start = Path(incomplete + "x").parent  # of "a/b" as of "a/" the folder a
    found = sorted(start.iterdir()) if start.is_dir() else []
    texts = [f"{path}/" if path.is_dir() else str(path) for path in found if not path.name.startswith(".")]
    return [text for text in texts if text.startswith(incomplete)]
