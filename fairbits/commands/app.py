"""The commands together. torch and scikit-learn take seconds to import, so each command imports them when it runs."""

import sys
from typing import Annotated

import typer

from fairbits.commands.audit import audit
from fairbits.commands.bench import bench
from fairbits.commands.certify import certify
from fairbits.commands.data import data
from fairbits.commands.failures import EPILOG, Commands, exit_code_of, warnings_in_words
from fairbits.commands.fit import fit
from fairbits.commands.path import path
from fairbits.commands.predict import predict
from fairbits.commands.report import report
from fairbits.commands.reproduce import reproduce
from fairbits.commands.transform import transform

app = typer.Typer(
    name="fairbits",
    cls=Commands,
    epilog=EPILOG,
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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Turn the rows of a table into a few random bits that hide sensitive columns, and bound what they reveal."""


for _command in (fit, transform, predict, audit, certify, report, path, reproduce, bench):
    app.command()(_command)
app.add_typer(data, name="data")


def main() -> None:
    """Run the command line; an error is a sentence, not a traceback."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # wherever it stands
    try:
        with warnings_in_words(debug=debug):
            app()
    except Exception as error:
        raise SystemExit(exit_code_of(error, debug=debug)) from None
