"""Progress, shown on a terminal only and on stderr: stdout holds results."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


def waiting(what: str) -> AbstractContextManager[Any]:
    """Show that something takes its time."""
    return Console(stderr=True).status(what)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show how many rows of a table are done; their total is unknown."""
    with _bar(TextColumn("{task.description}: {task.completed:,.0f} rows"), TimeElapsedColumn()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda rows: bar.update(task, completed=rows)


@contextmanager
def advancing() -> Iterator[Callable[[float, float, str], None]]:
    """Show how much of how much is done, and what is being done."""
    with _bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def _bar(*columns: Any) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not console.is_terminal)
