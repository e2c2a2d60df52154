"""Commands. torch and scikit-learn take seconds to import, so the commands import what they need."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairbits.commands import machine, using
from fairbits.commands.arguments import complete_table, names, paragraphs
from fairbits.commands.failures import EPILOG, Commands, exit_code_of, warnings_in_words

app = typer.Typer(
    name="fairbits",
    cls=Commands,
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


class ShippedTable(StrEnum):
    """Tables inside the package."""

    compas = "compas"
    adult = "adult"
    bank = "bank"


class Method(StrEnum):
    """Methods with a gamma."""

    mi = "mi"
    bernoulli = "bernoulli"


class Tracker(StrEnum):
    """Where records may be mirrored."""

    wandb = "wandb"


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
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Turn rows into a few random bits that forget a sensitive attribute, and measure what they still tell."""


@app.command()
def path(
    table: Annotated[ShippedTable, typer.Argument(help="A table shipped with fairbits.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and figure.")] = Path(
        "results/path"
    ),
    method: Annotated[Method, typer.Option(help="Penalty: joint information (mi) or per bit (bernoulli).")] = Method.mi,
    gammas: Annotated[int, typer.Option(min=2, help="How many gammas, evenly spaced from 0 to 1.")] = 21,
    folds: Annotated[int, typer.Option(min=2, help="Folds that the scores are held out on.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the folds and the fits.")] = 0,
    code_size: Annotated[int, typer.Option(min=1, max=64, help="Bits per row.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON instead of a table.")] = False,
) -> None:
    """Train a gamma path and show the trade-off between accuracy, fairness and leakage."""
    from fairbits.commands.path import run_path

    run_path(
        str(table),
        output,
        method=str(method),
        gammas=gammas,
        folds=folds,
        seed=seed,
        code_size=code_size,
        as_json=as_json,
    )


@app.command()
def fit(
    table: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, or compas, adult or bank.", autocompletion=complete_table)
    ],
    label: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="The columns to forget, with commas between.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and what is known of it.")
    ] = Path("fairbits-model"),
    max_disparity: Annotated[
        float | None, typer.Option(help="Prove that decisions differ between groups by at most this rate.")
    ] = None,
    max_information: Annotated[
        float | None, typer.Option(help="Prove that the code tells at most so many bits about the groups.")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(min=0, max=1, help="Instead of a limit: the weight of forgetting.")
    ] = None,
    code_size: Annotated[int, typer.Option(min=1, max=16, help="Random bits per row.")] = 12,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas between.")] = None,
    bins: Annotated[int, typer.Option(min=2, help="Groups that a sensitive column of numbers is cut into.")] = 4,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the proof.")] = 0.95,
    epochs: Annotated[
        int, typer.Option(min=1, help="Most passes over the training rows; a small table gets 500 steps all the same.")
    ] = 40,
    separator: Annotated[str | None, typer.Option(help="Of the columns of a CSV; found if not given.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV, such as latin-1; UTF-8 if not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of words.")] = False,
) -> None:
    """Fit a model that forgets sensitive columns, prove what it still tells, and write it to a folder.

    Without a limit or a gamma, decisions are proved to differ by at most 0.1. Exit code 3: the limit was not proved.
    """
    from fairbits.commands.fit import run_fit
    from fairbits.workflow.fit_task import FitOptions

    if max_disparity is None and max_information is None and gamma is None:
        max_disparity = 0.1
    options = FitOptions(
        max_disparity=max_disparity,
        max_information=max_information,
        gamma=gamma,
        code_size=code_size,
        confidence=confidence,
        max_epochs=epochs,
    )
    run_fit(
        table,
        label,
        names(sensitive),
        output,
        options,
        reading={"separator": separator, "encoding": encoding},
        task={"drop": names(drop), "n_bins": bins},
        as_json=as_json,
    )


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="compas, adult, bank, stability, complexity, representations, information-plane, biased-mnist, "
            "all, or a TOML file."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of records, tables and figures.")] = Path(
        "results/reproduce"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="A few minutes instead of hours: one fold, few trials.")
    ] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials of every search; more goes on from fewer.")] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another setting of every run, as in TOML.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    track: Annotated[Tracker | None, typer.Option(help="Mirror every record there, too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON instead of tables.")] = False,
) -> None:
    """Rerun the paper's experiments; interrupt and repeat as you like, nothing finished is lost."""
    from fairbits.commands.reproduce import run_reproduce

    run_reproduce(
        experiment,
        output,
        quick=quick,
        trials=trials,
        changes=change,
        workers=workers,
        track=track,
        as_json=as_json,
    )


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that fit or reproduce has written.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write, if not there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Make report.html, and tables and figures of reproduce, anew from the records in a folder; nothing is trained."""
    from fairbits.errors import MissingExtraError
    from fairbits.report.report_folder import write_report

    if not (folder / "records.jsonl").exists() or (folder / "audit.json").exists():
        written = [write_report(folder, output)]
    else:
        try:
            from fairbits.lab.paper_page import write_lab_report
        except ImportError:
            raise MissingExtraError("report.html", "report") from None
        written = write_lab_report(folder, output)
    print(json.dumps({"output": str(written[-1])}) if as_json else f"Written: {', '.join(map(str, written))}")


for _command in (using.transform, using.predict, using.audit, using.certify, machine.bench):
    app.command(help=paragraphs(_command))(_command)
app.add_typer(machine.data, name="data")


def main() -> None:
    """Run the command line; errors a user can mend are one paragraph, not a traceback."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # wherever it stands
    try:
        with warnings_in_words(debug=debug):
            app()
    except Exception as error:
        raise SystemExit(exit_code_of(error, debug=debug)) from None
