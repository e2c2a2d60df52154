"""The arguments that several commands share, lists with commas, and what the shell may complete."""

from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated

import typer


class ShippedTable(StrEnum):
    """The tables inside the package."""

    compas = auto()
    adult = auto()
    bank = auto()


def names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list.

    >>> names("sex, race"), names(None)
    (['sex', 'race'], [])
    """
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def complete_table(incomplete: str) -> list[str]:
    """Return the shipped tables and the files that begin like this."""
    return [name for name in ShippedTable if name.startswith(incomplete)] + _paths(incomplete)


def complete_folder(incomplete: str) -> list[str]:
    """Return the folders that begin like this."""
    return [path for path in _paths(incomplete) if path.endswith("/")]


def _paths(incomplete: str) -> list[str]:
    start = Path(incomplete + "x").parent  # of "a/b" as of "a/" the folder a
    found = sorted(start.iterdir()) if start.is_dir() else []
    texts = [f"{path}/" if path.is_dir() else str(path) for path in found if not path.name.startswith(".")]
    return [text for text in texts if text.startswith(incomplete)]


ModelPath = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Folder that `fairbits fit` wrote.", autocompletion=complete_folder),
]
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="CSV or Parquet file.")]
Sensitive = Annotated[str | None, typer.Option(help="Sensitive columns, comma-separated.")]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, comma-separated.")]
Keep = Annotated[str | None, typer.Option(help="Columns to copy to the output, comma-separated.")]
Person = Annotated[
    str | None,
    typer.Option(
        help="Columns that identify a person, comma-separated. Without them, a person is recognised by the values the "
        "model reads, and every row of one table is a different person."
    ),
]
Reuse = Annotated[bool, typer.Option("--reuse", help="Write the same code again for people who have one.")]
Again = Annotated[bool, typer.Option("--again", help="Draw new codes; the certificate does not cover them.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence level.")]
Separator = Annotated[str | None, typer.Option(help="CSV delimiter.", show_default="detected")]
Encoding = Annotated[str | None, typer.Option(help="CSV encoding, such as latin-1.", show_default="UTF-8")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
