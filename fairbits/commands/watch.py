"""`fairbits watch`: a certificate that may be looked at after every table, with its state in one file."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import file_errors, locked

if TYPE_CHECKING:
    from fairbits.certificate import CertificateMonitor

LAST = 10  # batches that are printed


def watch(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="MODEL TABLE...",
            help="Folder that `fairbits fit` wrote, and tables of rows that were not used in the fit, each a batch. "
            "With --decision, tables alone.",
        ),
    ],
    state: Annotated[Path, Option(help="File that keeps the state of the watch; the next run continues from it.")],
    max_disparity: Annotated[
        float | None, Option(help="Limit on the disparity.", show_default="the certified one")
    ] = None,
    confidence: Annotated[
        float | None, Option(min=0.5, max=0.9999, help="Confidence level.", show_default="0.95")
    ] = None,
    sensitive: terminal.Sensitive = None,
    decision: Annotated[
        str | None, Option(help="Column of the tables with the decisions to watch, whoever made them.")
    ] = None,
    levels: terminal.Levels = None,
    crossed: terminal.Crossed = False,
    person: terminal.Person = None,
    picture: Annotated[Path | None, Option(help="SVG or PNG file for the bounds over time.")] = None,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Watch a limit table by table: proved, open or contradicted, valid however often you look.

    Exit code 4: the limit is contradicted. Exit code 3: the rows were used in the fit and prove nothing.
    """
    if picture and picture.suffix.lower() not in (".svg", ".png"):
        raise InputError("must end in .svg or .png.", argument="picture", value=picture)
    from fairbits.workflow.stream_checks import opened_monitor

    read = {"separator": separator, "encoding": encoding}
    model, tables, about, add = _what(paths, decision, terminal.names(sensitive), crossed)
    if model is not None and (levels or crossed):
        raise InputError("--levels and --crossed are for --decision.")
    busy, lock = f"Another process is adding tables to {state}.", state.with_name(f".{state.name}.lock")
    with file_errors(state), locked(lock, busy, "Try again when it has finished."):
        monitor = opened_monitor(state, model, max_disparity, confidence, terminal.cuts(levels), about)
        for path in tables:
            _add_table(monitor, path, read, partial(add, person=terminal.names(person)), state)
    print(json.dumps(monitor.to_dict()) if as_json else _words(monitor))
    if picture:
        _draw(monitor, picture)
    if monitor.verdict == "contradicted":
        raise SystemExit(terminal.CONTRADICTED)


def _what(
    paths: list[Path], decision: str | None, names: list[str], crossed: bool
) -> tuple[Any, list[Path], str, Callable]:
    """Return the model, if there is one, the tables, a name of what is watched, and what adds a table."""
    from fairbits.workflow import stream_checks as checks

    if decision is not None:
        if not names:
            raise InputError("Name the sensitive columns with --sensitive.")
        add = partial(checks.add_decisions, decision=decision, sensitive=names, crossed=crossed)
        return None, paths, f"{decision} by {', '.join(names)}", add
    from fairbits.tables.fitted_model import open_model

    with file_errors(paths[0]):
        model = open_model(paths[0])
        about = checks.watched_model(model)
    model.need_code()
    model.check_sensitive(names)
    if len(paths) < 2:
        raise InputError("Name at least one table after the model.")
    return model, paths[1:], about, partial(checks.add_codes, model=model)


def _add_table(
    monitor: "CertificateMonitor", path: Path, read: dict[str, Any], add: Callable[..., list[str]], state: Path
) -> None:
    """Add a table that the state has not seen, and write the state."""
    from fairbits.tables.table_file import TableFile
    from fairbits.workflow.stream_checks import UsedRowsError, file_fingerprint

    with file_errors(path), terminal.waiting(f"adding {path}"):
        table, batch = TableFile(path, **read), file_fingerprint(path)
        if batch in monitor.batches:
            print(f"{path} was added before: skipped.", file=sys.stderr)
            return
        try:
            notes = add(monitor, table=table, batch=batch)
        except UsedRowsError as error:
            print(f"fairbits: {error}", file=sys.stderr)
            raise SystemExit(terminal.NOT_CERTIFIED) from None
    monitor.save(state)
    for note in notes:
        print(f"{path}: {note}", file=sys.stderr)


def _words(monitor: "CertificateMonitor") -> str:
    from fairbits.certificate.certificate_record import at_least, at_most

    lines = [f"  {'batch':>5} {'rows':>11} {'at least':>8} {'at most':>8}  verdict"]
    for number, row in list(enumerate(monitor.history.itertuples(index=False), 1))[-LAST:]:
        bounds = f"{at_least(row.at_least, 4):>8} {at_most(row.at_most, 4):>8}"
        lines.append(f"  {number:>5} {row.rows:>11,} {bounds}  {row.verdict}")
    return "\n".join([str(monitor), "", *lines])


def _draw(monitor: "CertificateMonitor", picture: Path) -> None:
    from fairbits.certificate.certificate_record import percent

    try:
        from fairbits.report.charts import bounds_chart, save_picture
    except ImportError:
        raise MissingExtraError("A picture", "report") from None
    title = f"Disparity, {percent(monitor.confidence)} confidence at all times: {monitor.verdict}"
    with file_errors(picture):
        save_picture(bounds_chart(monitor.history, monitor.limit, title), picture)
