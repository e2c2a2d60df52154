"""How far a command is, on the terminal and nowhere else: standard output holds results alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, of a table whose rows nobody has counted."""
    with _bar(TextColumn("{task.description}: {task.completed:,.0f} rows"), TimeElapsedColumn()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda rows: bar.update(task, completed=rows)


@contextmanager
def stepping(words: dict[str, str]) -> Iterator[Callable[[int, int, str, float], None]]:
    """Show which step of how many is done, and the share of it; `words` are what the steps are called."""
    with _bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task("", total=None)

        def show(place: int, count: int, name: str, share: float) -> None:
            said = f"step {place + 1} of {count}, {words[name]}"
            bar.update(task, total=count, completed=place + share, description=said)

        yield show


def _bar(*columns: Any) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not console.is_terminal)
