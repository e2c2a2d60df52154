"""`fairbits transform` and `fairbits predict`: codes, or what the model reads in them, for the rows of a table."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairbits.certificate import Ledger, Release, Released
from fairbits.certificate.ledger import LEDGER_NAME
from fairbits.certificate.releasing import release_pieces
from fairbits.commands.progress import counting
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, open_model
from fairbits.tables.row_reader import RowReader, check_columns
from fairbits.tables.table_file import PIECE_ROWS, TableFile
from fairbits.tables.table_writer import TableWriter, check_output

KEPT = "The certificate does not cover the columns you kept ({}): anyone who gets the file can read them."
AVERAGED = (
    "The certificate does not cover these predictions: they are averaged over many draws, and it covers one draw. "
    "Leave --expected out to get predictions that it covers."
)
OF_CLASS = " The predicted class is covered, unless the recipient also gets the person's code."


def run_transform(
    model_path: Path,
    table_path: Path,
    output: Path,
    *,
    keep: list[str],
    person: list[str],
    reuse: bool,
    again: bool,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Draw a code of every row and write the bits."""
    model, table = _opened(model_path, table_path, output, keep, reading)
    model.need_code()
    names = list(model.method.get_feature_names_out())
    _check_free(names, keep)
    released, notes = release_table(model, table, person, reuse=reuse, again=again)
    _write(released, lambda bits: pd.DataFrame(bits, columns=names), table, keep, output)
    _report(released, notes, model, output, keep, "codes", as_json)


def run_predict(
    model_path: Path,
    table_path: Path,
    output: Path,
    *,
    keep: list[str],
    person: list[str],
    reuse: bool,
    again: bool,
    expected: bool,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Write the class of every row and the probability of each, from one drawn code or averaged over draws."""
    model, table = _opened(model_path, table_path, output, keep, reading)
    _check_free(_predictions(model, np.zeros((0, len(model.method.classes_)))).columns, keep)
    if expected:
        if reuse or again or person:
            raise InputError("--expected draws no codes: leave --reuse, --again and --person out.")
        _expect(model, table, keep, output, as_json)
        return
    model.need_code()
    released, notes = release_table(model, table, person, reuse=reuse, again=again)
    _write(released, lambda bits: _predictions(model, model.method.decode(bits)), table, keep, output)
    _report(released, notes, model, output, keep, "predictions", as_json)


def _opened(
    model_path: Path, table_path: Path, output: Path, keep: list[str], reading: dict[str, Any]
) -> tuple[FittedModel, TableFile]:
    """Open what is read, and look at the place of what will be written, before anything is drawn."""
    if output.exists() and table_path.exists() and output.samefile(table_path):
        raise InputError(f"{output} is the table itself; name another file with -o.")
    check_output(output)
    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    model = open_model(model_path)
    table = TableFile(table_path, **reading)
    check_columns(table, keep)
    return model, table


def _check_free(names: Sequence[str], keep: list[str]) -> None:
    both = sorted(set(names) & set(keep))
    if both or len(set(keep)) < len(keep):
        raise InputError(f"--keep would write the column {(both or keep)[0]!r} twice; rename that column.")


def release_table(
    model: FittedModel, table: TableFile, person: Sequence[str] = (), *, reuse: bool = False, again: bool = False
) -> tuple[Released, list[str]]:
    """Release the codes of a table's rows through the model's ledger; return them and what was odd about the table."""
    if reuse and again:
        raise InputError("--reuse outputs the same codes, --again draws new ones: pass only one of the two.")
    repeated = "reuse" if reuse else "again" if again else "refuse"
    reader, file = RowReader(model, table), model.folder / LEDGER_NAME

    def pieces(show: Callable[[int], None]) -> Iterator[tuple[np.ndarray, pd.DataFrame | None]]:
        for piece in reader.pieces(verbatim=person):
            yield piece.X, piece.carried if person else None
            show(reader.rows)

    with counting("drawing codes") as show, Ledger(file, model.method.code_size, person) as ledger:
        return release_pieces(model.method, pieces(show), ledger, Release(), repeated, model.draws), reader.notes


def _write(
    released: Released,
    columns: Callable[[np.ndarray], pd.DataFrame],
    table: TableFile,
    keep: Sequence[str],
    output: Path,
) -> None:
    """Write what `columns` makes of the bits, beside the columns to keep, a piece of the table at a time."""
    rows, done = len(released.codes), 0
    empty = (pd.DataFrame(index=range(min(PIECE_ROWS, rows - at))) for at in range(0, rows, PIECE_ROWS))
    try:
        with TableWriter(output) as writer:
            for carried in table.pieces([], verbatim=keep) if keep else empty:
                made = columns(released.codes[done : done + len(carried)])
                writer.write(pd.concat([carried, made], axis=1))
                done += len(carried)
            if done != rows or table.has_changed():
                raise InputError(f"{table.path} was changed meanwhile")
    except (OSError, ValueError) as error:
        raise OSError(
            f"{output} could not be written ({error}). The codes are in the ledger and count as released: run again "
            "with --reuse to get the same ones."
        ) from error


def _predictions(model: FittedModel, probabilities: np.ndarray) -> pd.DataFrame:
    classes = model.method.classes_
    columns = {f"probability_{name}": probabilities[:, i].round(6) for i, name in enumerate(classes)}
    return pd.DataFrame({"prediction": classes[probabilities.argmax(1)], **columns})


def _expect(model: FittedModel, table: TableFile, keep: list[str], output: Path, as_json: bool) -> None:
    reader = RowReader(model, table)
    with counting("predicting") as show, TableWriter(output) as writer:
        for piece in reader.pieces(verbatim=keep):
            made = _predictions(model, model.method.predict_proba(piece.X))
            writer.write(pd.concat([piece.carried, made], axis=1))
            show(reader.rows)
    warning = AVERAGED + (OF_CLASS if model.limit is not None and model.limit.of_class else "")
    if as_json:
        print(json.dumps({"output": str(output), "rows": reader.rows, "covered": False, "notes": reader.notes}))
    else:
        print("\n".join([f"{reader.rows:,} predictions written to {output}.", warning, *reader.notes]))


def _report(
    released: Released, notes: list[str], model: FittedModel, output: Path, keep: list[str], what: str, as_json: bool
) -> None:
    if as_json:
        counts = ("new", "reused", "again", "most_draws", "alike", "exchangeable", "covered")
        record = {name: getattr(released, name) for name in counts}
        record = {"output": str(output), "rows": len(released.codes), **record, "notes": notes}
        print(json.dumps({**record, "certificate_draws": released.certified_draws}))
        return
    lines = [f"{len(released.codes):,} {what} written to {output}, one draw per row."]
    if released.reused:
        lines.append(f"{released.reused:,} of them use a code that was released before: no new draw.")
    if released.exchangeable:
        lines.append(
            f"{released.exchangeable:,} rows are identical to other rows. If the row order changed, those people may "
            "have swapped codes, and a recipient who knows their names may have two draws of a person. Keep the order, "
            "or use --person from the first release on."
        )
    if not released.covered:
        who = f"{released.again:,} people now have" if released.again else "Some of these people have"
        most, covers = released.most_draws, released.certified_draws
        lines.append(
            f"Warning: {who} up to {most} codes, and the certificate covers {covers}. To see what {most} reveal, run "
            f"`fairbits certify {model.folder} TABLE --draws {most}` with new rows."
        )
    if released.alike and not released.exchangeable:
        rows = "1 row is" if released.alike == 1 else f"{released.alike:,} rows are"
        lines.append(
            f"{rows} identical to an earlier one; we treated them as different people. If you have an ID column, pass "
            "it with --person."
        )
    if keep:
        lines.append(KEPT.format(", ".join(keep)))
    print("\n".join([*lines, *notes]))
