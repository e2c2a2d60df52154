"""What the commands share: arguments, exit codes, failures as sentences, and progress, on a terminal only."""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from glob import escape, glob
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Argument, Option
from typer.core import TyperGroup

from fairbits.errors import InputError, InputWarning
from fairbits.workflow.option_words import worded

BAD_INPUT, WRONG_USAGE, NOT_CERTIFIED, CONTRADICTED, NOT_USEFUL = 1, 2, 3, 4, 5  # the second is typer's
BUG, INTERRUPTED, BROKEN_PIPE = 70, 130, 141
LISTS = ("--sensitive", "--drop", "--person", "--keep", "--beside", "--columns")  # options with several names
SHARES = ("--confidence", "--max-disparity", "--max-odds-disparity", "--calibration-share")
IN_NOTES = ("BinnedSensitiveFeaturesWarning",)  # the commands print these as notes
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
TablePath = Annotated[
    Path,
    Argument(metavar="TABLE", help="CSV or Parquet file, a folder of them, or a pattern such as 'in/*.csv'."),
]
Output = Annotated[
    Path, Option("--output", "-o", help="CSV or Parquet file to write, or a folder for a large table: Parquet parts.")
]
Sensitive = Annotated[str | None, Option(help="Sensitive columns, comma-separated.")]
Drop = Annotated[str | None, Option(help="Columns to leave out, comma-separated.")]
Person = Annotated[
    str | None, Option(help="Columns that identify a person, comma-separated, if people have several rows.")
]
Bins = Annotated[int, Option(min=2, help="Number of groups that a sensitive column of numbers is cut into.")]
Crossed = Annotated[
    bool,
    Option(
        "--crossed/--each",
        help="Several sensitive columns: take their combinations as the groups, or each column on its own.",
    ),
]
MergeSmall = Annotated[
    int | None,
    Option(min=2, help="Pool groups with fewer training rows than this as '(other)'.", show_default="17"),
]
CalibrationShare = Annotated[float, Option(help="Share of the rows that certify. A fifth tests, and the rest train.")]
Reference = Annotated[
    str | None, Option(help="Group with which the rates of the others are compared.", show_default="any two groups")
]
Seed = Annotated[int, Option(min=0, max=2**31 - 1, help="Seed of the split; pass the same one to fairbits fit.")]
Confidence = Annotated[float, Option(min=0.5, max=0.9999, help="Confidence level.")]
Levels = Annotated[
    str | None,
    Option(help="For a column of scores: the thresholds between the levels that are released, such as 0.25,0.5."),
]
Separator = Annotated[str | None, Option(help="CSV delimiter.", show_default="detected")]
Encoding = Annotated[str | None, Option(help="CSV encoding, such as latin-1.", show_default="UTF-8")]
Workers = Annotated[int, Option(min=1, help="Processes that share the work, each with one thread.")]
ShardOf = Annotated[
    str | None,
    Option("--shard", help="Do every N-th part only, such as 0/3; `fairbits merge` combines the shards."),
]
Cluster = Annotated[
    str | None, Option(help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786, to share the work on a cluster.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]


def cuts(levels: str | None) -> list[float] | None:
    """Return the numbers of --levels."""
    try:
        return None if levels is None else [float(cut) for cut in names(levels)]
    except ValueError:
        raise InputError("must be numbers, such as 0.25,0.5,0.75.", argument="levels", value=levels) from None


def advised(message: str, option: Any, arguments: list[str]) -> str:
    """Return typer's message about a bad option, or about arguments too many, with the value and with what to do.

    >>> advised("Got unexpected extra argument (race)", None, ["fit", "t.csv", "--sensitive", "sex", "race"])
    'Got unexpected extra argument (race). Separate names by commas: --sensitive sex,race'
    """
    extra = re.search(r"extra argument.*\((.+)\)", message)
    for place, argument in enumerate(arguments):
        values = list(takewhile(lambda text: not text.startswith("--"), arguments[place + 1 :]))
        if extra and argument in LISTS and extra[1].split()[0] in values[1:]:
            return f"{message}. Separate names by commas: {argument} {','.join(values)}"
        if option is not None and argument in option.opts and values:
            said = message if values[0] in message else f"{values[0]}. {message}"
            share = re.fullmatch(r"(\d+(\.\d*)?)\s*%?", values[0]) if argument in SHARES else None
            if share is None or float(share[1]) <= 1:
                return said
            return f"{said}. For {share[1]} %, write {float(share[1]) / 100:g}."
    return message


class Commands(TyperGroup):
    """The commands: Ctrl-C ends each with a line, a closed pipe with none."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            print("\nfairbits: interrupted.", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:  # nobody reads the rest, and Python would complain about it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None
        except Exception as error:
            if getattr(error, "exit_code", None) == WRONG_USAGE and hasattr(error, "message"):
                error.message = advised(error.message, getattr(error, "param", None), sys.argv)
            raise


def _show_version(wanted: bool) -> None:
    if wanted:
        import fairbits

        print(f"fairbits {fairbits.__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Fit models whose decisions, or codes to share, differ little between groups of people, and prove it."""


def run(app: Callable[[], Any]) -> None:
    """Run the command line; an error or a warning is a sentence, with --debug what Python prints."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # wherever it stands
    said: set[str] = set()

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        """Print each warning of fairbits once, and none of other packages."""
        if isinstance(message, InputWarning) and category.__name__ not in IN_NOTES and worded(message) not in said:
            print(f"Warning: {worded(message)}", file=sys.stderr)
            said.add(worded(message))

    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.showwarning = show
            app()
    except Exception as error:
        ours, about = isinstance(error, InputError), " ".join(str(error).split())[:300] or "no message"
        bug = f"unexpected {type(error).__name__}: {about}. This is a bug in fairbits. Please run the command again"
        if debug:
            traceback.print_exception(error)
        else:
            sentence = worded(error) if ours else f"{bug} with --debug and report what it prints."
            print(f"fairbits: {sentence}", file=sys.stderr)
        raise SystemExit(BAD_INPUT if ours else BUG) from None
