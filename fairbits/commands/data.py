"""`fairbits data`: the tables that come with fairbits, and those it can fetch."""

import json
from pathlib import Path
from textwrap import shorten
from typing import Any

import pandas as pd

from fairbits import datasets
from fairbits.commands.arguments import SHIPPED
from fairbits.commands.plain_words import plain_words
from fairbits.datasets.mnist import CAVEATS, SHA256, fetch_mnist, mnist_is_kept
from fairbits.errors import InputError
from fairbits.tables.table_writer import TableWriter, check_output

SHORT = 110  # of a caveat in a list


def shipped_frame(name: str) -> tuple[pd.DataFrame, datasets.Dataset]:
    """Return a shipped table with its label and sensitive column in it."""
    data = getattr(datasets, f"load_{name}")()
    own = pd.DataFrame({data.target_name: data.y.to_numpy(), data.s.name: data.s.to_numpy()})
    return pd.concat([data.X.reset_index(drop=True), own], axis=1), data


def run_list(*, as_json: bool) -> None:
    """Print what there is."""
    found = [_described(name) for name in SHIPPED] + [_mnist()]
    if as_json:
        print(json.dumps(found))
        return
    for entry in found:
        print(f"{entry['name']}  ({entry['how']})")
        print(f"  {entry['rows']:,} rows; label {entry['label']}; sensitive {entry['sensitive']}")
        print(*(f"  - {shorten(plain_words(caveat), SHORT)}" for caveat in entry["caveats"]), sep="\n")


def _described(name: str) -> dict[str, Any]:
    frame, data = shipped_frame(name)
    return {
        "name": name,
        "how": "shipped",
        "rows": len(frame),
        "label": data.target_name,
        "sensitive": str(data.s.name),
        "groups": {str(group): int(n) for group, n in data.s.value_counts().items()},
        "caveats": list(data.caveats),
    }


def _mnist() -> dict[str, Any]:
    how = "fetched already" if mnist_is_kept() else "to be fetched: fairbits data fetch mnist"
    label = {"label": "the digit", "sensitive": "none; biased_mnist in Python colours the background", "groups": {}}
    return {"name": "mnist", "how": how, "rows": 70_000, **label, "caveats": list(CAVEATS)}


def run_fetch(name: str, output: Path | None, data_home: Path | None, *, as_json: bool = False) -> None:
    """Write a shipped table to a file, or fetch images into the folder of data."""
    if name == "mnist":
        if output is not None:
            raise InputError(
                "mnist is images, not a table: leave -o out, and say --data-home for the folder to keep it."
            )
        data = fetch_mnist(data_home)
        print(json.dumps(_mnist()) if as_json else f"{data!r}: {len(SHA256)} files checked and kept.")
        return
    if data_home is not None:
        raise InputError(
            f"{name} comes with fairbits; --data-home is for mnist. Say -o {name}.csv to write it to a file."
        )
    output = output or Path(f"{name}.csv")
    check_output(output)
    frame, table = shipped_frame(name)
    with TableWriter(output) as writer:
        writer.write(frame)
    if as_json:
        print(json.dumps({**_described(name), "output": str(output)}))
        return
    print(f"{len(frame):,} rows written to {output}. Mind:")
    print(*(f"- {plain_words(caveat)}" for caveat in table.caveats), sep="\n")
    print(f"Try: fairbits fit {output} --label {table.target_name} --sensitive {table.s.name}")
