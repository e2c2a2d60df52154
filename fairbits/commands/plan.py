"""`fairbits plan`: which limits a table can prove, before anything is trained."""

import json
from typing import Annotated, Any

from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.commands.fit import read_task


def plan(
    table: Annotated[
        str, Argument(help="CSV or Parquet file, or compas, adult or bank.", autocompletion=terminal.complete_table)
    ],
    label: Annotated[str | None, Option(help="Column to predict.")] = None,
    sensitive: terminal.Sensitive = None,
    person: terminal.Person = None,
    drop: terminal.Drop = None,
    bins: terminal.Bins = 4,
    crossed: terminal.Crossed = False,
    merge_small: terminal.MergeSmall = None,
    calibration_share: terminal.CalibrationShare = 0.24,
    seed: terminal.Seed = 0,
    confidence: terminal.Confidence = 0.95,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Say in seconds which limits `fairbits fit` can prove with a table, from the sizes of its groups."""
    from fairbits.workflow.planning import plan as planned
    from fairbits.workflow.planning import plan_words

    read: dict[str, Any] = {"separator": separator, "encoding": encoding}
    columns: dict[str, Any] = {"drop": terminal.names(drop), "person": terminal.names(person), "n_bins": bins}
    columns |= {"crossed": crossed, "merge_small": merge_small, "calibration_share": calibration_share, "seed": seed}
    with terminal.waiting("counting the groups"):
        found = planned(read_task(table, label, terminal.names(sensitive), read, columns), confidence)
    print(json.dumps(found) if as_json else plan_words(found))
