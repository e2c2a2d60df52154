"""`fairbits reproduce`: run what is missing of the paper's experiments, then write tables and figures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairbits.commands.terminal import INTERRUPTED, AsJson, Cluster

Tracker = StrEnum("Tracker", ["wandb"])  # where records may be copied to


def reproduce(
    experiment: Annotated[
        str,
        Argument(
            help="compas, adult, bank, stability, complexity, representations, information-plane, biased-mnist, arena, "
            "refits, paper-settings, variants, comparisons, searches, domain, all, or a TOML file."
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="Folder for records, tables and figures.")] = Path(
        "results/reproduce"
    ),
    quick: Annotated[bool, Option("--quick", help="One fold and few trials: minutes, not hours.")] = False,
    trials: Annotated[
        int | None, Option(min=1, help="Trials per search; a larger number continues a smaller one.")
    ] = None,
    change: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="Change a setting of every run, as in TOML.")
    ] = None,
    workers: Annotated[int, Option(min=1, help="Processes with one thread each.")] = 2,
    searches: Annotated[
        Path | None,
        Option(help="Folder of searches whose chosen settings `refits` fits again; by default the one of -o."),
    ] = None,
    cluster: Cluster = None,
    storage: Annotated[
        str | None,
        Option(
            metavar="postgresql://USER@HOST/NAME",
            help="Database for workers without a shared disk: they share the records of folders with the same name.",
        ),
    ] = None,
    track: Annotated[Tracker | None, Option(help="Also send every record to this service.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments.

    You can stop the command and repeat it: finished runs are kept.
    """
    from fairbits.lab.reproduction import run_experiments

    options: dict[str, Any] = {"quick": quick, "workers": workers, "cluster": cluster, "storage": storage}
    options |= {"track": track, "as_json": as_json, "searches": searches}
    try:
        run_experiments(experiment, output, changes=change or [], trials=trials, **options)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
