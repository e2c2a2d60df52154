"""Commands about data and this machine: declarations."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

data = typer.Typer(help="The tables that come with fairbits, and images it can fetch.", no_args_is_help=True)


class KnownData(StrEnum):
    """What `fairbits data fetch` knows."""

    compas = "compas"
    adult = "adult"
    bank = "bank"
    mnist = "mnist"


@data.command("list")
def list_data(
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of words.")] = False,
) -> None:
    """List the data: rows, label, sensitive column, and what is wrong with it."""
    from fairbits.commands.data import run_list

    run_list(as_json=as_json)


@data.command("fetch")
def fetch_data(
    name: Annotated[KnownData, typer.Argument(help="Which.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file for a shipped table.")
    ] = None,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder to keep mnist in; ~/.cache/fairbits if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of words.")] = False,
) -> None:
    """Write a shipped table to a file to try things on, or fetch mnist."""
    from fairbits.commands.data import run_fetch

    run_fetch(str(name), output, data_home, as_json=as_json)


def bench(
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of a table.")] = False,
) -> None:
    """Measure how fast this machine fits and draws codes; under a minute."""
    from fairbits.commands.bench import run_bench

    run_bench(as_json=as_json)
