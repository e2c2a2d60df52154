"""`fairbits certify`: a model's certificate on new rows, or that of somebody's decisions."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.errors import InputError
from fairbits.storage import file_errors

if TYPE_CHECKING:
    from fairbits.tables.fitted_model import FittedModel
    from fairbits.tables.table_file import Table
    from fairbits.workflow.recertified import Recertified


def certify(
    model: Annotated[
        Path,
        Argument(
            metavar="MODEL",
            help="Folder that `fairbits fit` wrote; leave it out with --decision.",
            autocompletion=terminal.complete_folder,
        ),
    ],
    table: Annotated[
        Path | None,
        Argument(
            metavar="TABLE",
            help="CSV or Parquet file, or a folder of them, with rows that were not used in the fit.",
            show_default=False,
        ),
    ] = None,
    sensitive: terminal.Sensitive = None,
    decision: Annotated[
        str | None, Option(help="Column of TABLE with the decisions to certify, whoever made them.")
    ] = None,
    positive: Annotated[str | None, Option(help="The favourable decision.", show_default="last of two")] = None,
    levels: terminal.Levels = None,
    crossed: terminal.Crossed = False,
    reference: terminal.Reference = None,
    label: Annotated[str | None, Option(help="Label column: also certify among rows with the same label.")] = None,
    person: terminal.Person = None,
    beside: Annotated[
        str | None, Option(help="Other models, comma-separated, whose codes of the same people a recipient also has.")
    ] = None,
    confidence: terminal.Confidence = 0.95,
    workers: terminal.Workers = 1,
    shard: terminal.ShardOf = None,
    cluster: terminal.Cluster = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="With --shard: JSON file for the sums, for `fairbits merge`.")
    ] = None,
    draws: Annotated[int, Option(min=1, max=16, help="Random codes: how many draws of a person a recipient gets.")] = 1,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Check a model's certificate on new data, or certify a column of decisions.

    Exit code 4: the rows contradict the certificate. Exit code 3: the rows were used in the fit and prove nothing.
    """
    from fairbits.tables.table_file import open_table

    read: dict[str, Any] = {"separator": separator, "encoding": encoding}
    if decision is not None:
        if table is not None:
            raise InputError("With --decision, name the table alone: fairbits certify TABLE --decision COLUMN.")
        if not terminal.names(sensitive):
            raise InputError("Name the sensitive columns with --sensitive.")
        from fairbits.workflow.decision_checks import certify_decisions

        asked: dict[str, Any] = {"label": label, "person": terminal.names(person), "positive": positive}
        asked |= {"confidence": confidence, "crossed": crossed, "reference": reference, "levels": terminal.cuts(levels)}
        with file_errors(model), terminal.waiting("certifying"):
            made = certify_decisions(open_table(model, **read), decision, terminal.names(sensitive), **asked)
        print(json.dumps(made.to_dict(), default=str) if as_json else made)
        return
    if table is None:
        raise InputError("Name a model and a table, or a table and its --decision.")
    if positive or levels or crossed or reference:
        raise InputError("--positive, --levels, --crossed and --reference are for --decision.")
    from fairbits.tables.fitted_model import open_model
    from fairbits.workflow.model_checks import recertify

    with file_errors(table):
        fitted = open_model(model)
        fitted.check_sensitive(terminal.names(sensitive))
        others = [open_model(Path(name)) for name in terminal.names(beside)]
        rows = open_table(table, **read)
    known: dict[str, Any] = {"person": terminal.names(person), "beside": others, "label": label}
    how: dict[str, Any] = {"workers": workers, "cluster": cluster}
    if shard is not None or output is not None:
        _write_sums(fitted, rows, output, shard, confidence, draws, **known, **how)
        return
    with terminal.waiting("certifying"):
        found = recertify(fitted, rows, confidence=confidence, draws=draws, **known, **how)
    tell(found, as_json)


def _write_sums(
    model: "FittedModel",
    table: "Table",
    output: Path | None,
    shard: str | None,
    confidence: float,
    draws: int,
    *,
    label: str | None,
    workers: int,
    cluster: str | None,
    **others: Any,
) -> None:
    """Write the sums of a shard."""
    from fairbits.tables.file_formats import check_place
    from fairbits.workers import Shard
    from fairbits.workflow.sum_files import write_sums

    if output is None or shard is None:
        raise InputError("--shard and -o go together: name a file for the sums of the shard, such as -o sums-0.json.")
    if draws > 1 or any(others.values()):
        raise InputError("--draws, --person and --beside need all rows in one process: leave --shard out.")
    with file_errors(output):
        check_place(output)
    how: dict[str, Any] = {"workers": workers if workers > 1 else None, "cluster": cluster}
    with terminal.waiting("summing up"):
        rows = write_sums(model, table, output, Shard.of(shard), confidence=confidence, label=label, **how)
    print(f"Sums of {rows:,} rows written to {output}. Combine all shards with `fairbits merge`.")


def tell(found: "Recertified", as_json: bool) -> None:
    """Print what new rows say of a certificate; the exit code says it, too."""
    from fairbits.workflow.recertified import CONTRADICTED, NOT_FRESH

    print(json.dumps(found.to_dict(), default=str) if as_json else found)
    code = {CONTRADICTED: terminal.CONTRADICTED, NOT_FRESH: terminal.NOT_CERTIFIED}.get(found.verdict)
    if code is not None:
        raise SystemExit(code)
