"""What the commands share: arguments, exit codes, and progress, on stderr and on a terminal only."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Argument, Option

BAD_INPUT, NOT_CERTIFIED, CONTRADICTED, BUG, INTERRUPTED, BROKEN_PIPE = 1, 3, 4, 70, 130, 141  # 2 is typer's
ShippedTable = StrEnum("ShippedTable", ["compas", "adult", "bank"])


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
    return [f"{path}/" if Path(path).is_dir() else path for path in sorted(glob(escape(incomplete) + "*"))]


def waiting(what: str) -> AbstractContextManager[Any]:
    """Show that something takes its time."""
    return Console(stderr=True).status(what)


@contextmanager
def advancing() -> Iterator[Callable[[float, float | None, str], None]]:
    """Show how much of how much is done, None if that is unknown, and what is being done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


ModelPath = Annotated[
    Path, Argument(metavar="MODEL", help="Folder that `fairbits fit` wrote.", autocompletion=complete_folder)
]
TablePath = Annotated[Path, Argument(metavar="TABLE", help="CSV or Parquet file.")]
Output = Annotated[Path, Option("--output", "-o", help="CSV or Parquet file to write.")]
Sensitive = Annotated[str | None, Option(help="Sensitive columns, comma-separated.")]
Drop = Annotated[str | None, Option(help="Columns to leave out, comma-separated.")]
Confidence = Annotated[float, Option(min=0.5, max=0.9999, help="Confidence level.")]
Separator = Annotated[str | None, Option(help="CSV delimiter.", show_default="detected")]
Encoding = Annotated[str | None, Option(help="CSV encoding, such as latin-1.", show_default="UTF-8")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
