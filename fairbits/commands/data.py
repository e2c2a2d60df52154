"""`fairbits data`: the tables inside fairbits, and the images it can download."""

import json
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairbits.commands.terminal import AsJson
from fairbits.errors import InputError
from fairbits.storage import file_errors

if TYPE_CHECKING:
    import pandas as pd

    from fairbits.datasets import Dataset

data = typer.Typer(help="List or write the example data.", no_args_is_help=True)
ExampleData = StrEnum("ExampleData", ["compas", "adult", "bank", "mnist"])


def shipped_frame(name: str) -> tuple["pd.DataFrame", "Dataset"]:
    """Return a shipped table with its label and sensitive column in it."""
    import pandas as pd

    from fairbits import datasets

    found = getattr(datasets, f"load_{name}")()
    own = pd.DataFrame({found.target_name: found.y.to_numpy(), found.s.name: found.s.to_numpy()})
    return pd.concat([found.X.reset_index(drop=True), own], axis=1), found


@data.command("list")
def list_data(as_json: AsJson = False) -> None:
    """List the data: rows, label, sensitive column and known faults."""
    found = [_described(name) for name in ExampleData]
    if as_json:
        print(json.dumps(found))
        return
    for entry in found:
        print(f"{entry['name']}  ({entry['how']})")
        print(f"  {entry['rows']:,} rows; label {entry['label']}; sensitive {entry['sensitive']}")
        print(*(f"  - {shorten(caveat, 110)}" for caveat in entry["caveats"]), sep="\n")


@data.command("fetch")
def fetch_data(
    name: Annotated[ExampleData, Argument(help="Table or images.", show_default=False)],
    output: Annotated[
        Path | None, Option("--output", "-o", help="CSV or Parquet file for a table.", show_default="NAME.csv")
    ] = None,
    data_home: Annotated[Path | None, Option(help="Folder for MNIST.", show_default="~/.cache/fairbits")] = None,
    as_json: AsJson = False,
) -> None:
    """Write an example table to a file, or download MNIST."""
    from fairbits.datasets.mnist import SHA256, fetch_mnist
    from fairbits.tables.file_formats import check_output, write_table

    if name == "mnist":
        if output is not None:
            raise InputError("mnist is images, not a table: leave -o out, and name a folder with --data-home.")
        with file_errors(data_home or Path.home()):
            images = fetch_mnist(data_home)
        print(json.dumps(_described(name)) if as_json else f"{images!r}: {len(SHA256)} files checked.")
        return
    if data_home is not None:
        raise InputError(f"{name} comes with fairbits, and --data-home is for mnist. Write it with -o {name}.csv.")
    output = output or Path(f"{name}.csv")
    check_output(output)
    with file_errors(output):
        write_table(output, [shipped_frame(name)[0]])
    found = {**_described(name), "output": str(output)}
    if as_json:
        print(json.dumps(found))
        return
    print(f"{found['rows']:,} rows written to {output}. Before you use them:")
    print(*(f"- {caveat}" for caveat in found["caveats"]), sep="\n")
    print(f"Try: fairbits fit {output} --label {found['label']} --sensitive {found['sensitive']}")


def _described(name: str) -> dict[str, Any]:
    if name == "mnist":
        from fairbits.datasets.mnist import CAVEATS, mnist_is_kept

        how = "downloaded" if mnist_is_kept() else "download it with fairbits data fetch mnist"
        facts = {"rows": 70_000, "label": "the digit", "groups": {}, "caveats": list(CAVEATS)}
        return {"name": "mnist", "how": how, "sensitive": "none; biased_mnist in Python adds colours", **facts}
    frame, table = shipped_frame(name)
    groups = {str(group): int(n) for group, n in table.s.value_counts().items()}
    facts = {"rows": len(frame), "label": table.target_name, "groups": groups, "caveats": list(table.caveats)}
    return {"name": str(name), "how": "shipped", "sensitive": str(table.s.name), **facts}
