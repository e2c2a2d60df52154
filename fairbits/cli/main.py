"""Commands. torch and scikit-learn take seconds to import, so the commands import what they need."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="fairbits",
    help="Turn rows into a few random bits that forget a sensitive attribute, and measure what they still tell.",
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


@app.callback()
def _options() -> None:
    """Keep `fairbits path` a command of its own while it is the only one."""


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
) -> None:
    """Train a gamma path and show the trade-off between accuracy, fairness and leakage."""
    from fairbits.cli.path import run_path

    run_path(str(table), output, method=str(method), gammas=gammas, folds=folds, seed=seed, code_size=code_size)


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
) -> None:
    """Rerun the paper's experiments; interrupt and repeat as you like, nothing finished is lost."""
    from fairbits.cli.reproduce import run_reproduce

    run_reproduce(experiment, output, quick=quick, trials=trials, changes=change, workers=workers, track=track)


def main() -> None:
    """Run the command line; errors a user can mend are one paragraph, not a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"fairbits: {error}", file=sys.stderr)
        raise SystemExit(1) from None
