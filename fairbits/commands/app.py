"""The commands together: a failure is a sentence and an exit code.

torch and scikit-learn take seconds to import, so each command imports them when it runs.
"""

import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from fairbits.commands.audit import audit
from fairbits.commands.bench import bench
from fairbits.commands.certify import certify
from fairbits.commands.data import data
from fairbits.commands.fit import fit
from fairbits.commands.path import path
from fairbits.commands.predict import predict
from fairbits.commands.report import report
from fairbits.commands.reproduce import reproduce
from fairbits.commands.terminal import BAD_INPUT, BROKEN_PIPE, BUG, INTERRUPTED
from fairbits.commands.transform import transform
from fairbits.errors import InputError, InputWarning
from fairbits.workflow.option_words import worded

IN_NOTES = ("BinnedSensitiveFeaturesWarning",)  # the commands print these as notes


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


app = typer.Typer(
    name="fairbits",
    cls=Commands,
    epilog="Exit codes: 0 success, 1 bad input, 2 wrong usage, 3 not certified, 4 certificate contradicted, 70 bug in "
    "fairbits, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import fairbits

        print(f"fairbits {fairbits.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Turn the rows of a table into a few bits that hide sensitive columns, and bound what they reveal."""


for _command in (fit, transform, predict, audit, certify, report, path, reproduce, bench):
    app.command()(_command)
app.add_typer(data, name="data")


def main() -> None:
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
