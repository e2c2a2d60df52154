"""`fairbits transform` and `fairbits predict`: codes, or what the model reads in them, for the rows of a table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairbits.commands.progress import counting
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, open_model
from fairbits.tables.row_reader import RowReader, check_columns
from fairbits.tables.table_file import TableFile
from fairbits.tables.table_writer import TableWriter, check_output
from fairbits.workflow.release_table import AGAIN, ONCE, REUSE, Released, release, write_released

KEPT = (
    "The columns kept beside them ({}) are not covered by any certificate: who sees both knows what these columns say."
)
AVERAGED = (
    "These predictions are averaged over draws: a function of the row itself. The certificate, which is of one draw, "
    "does not cover them; hand on predictions without --expected instead."
)
OF_CLASS = " The class alone is within what was promised, for who gets it and no code of the same person."


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
    released = _released(model, table, person, reuse, again)
    write_released(released, lambda bits: pd.DataFrame(bits, columns=names), table, keep, output)
    _say(released, model, output, keep, "codes", as_json)


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
    released = _released(model, table, person, reuse, again)
    write_released(released, lambda bits: _predictions(model, model.method.decode(bits)), table, keep, output)
    _say(released, model, output, keep, "predictions", as_json)


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
        raise InputError(
            f"--keep names {(both or keep)[0]!r}, which would stand twice in the file; rename that column."
        )


def _released(model: FittedModel, table: TableFile, person: list[str], reuse: bool, again: bool) -> Released:
    if reuse and again:
        raise InputError("--reuse hands out the same codes, --again draws new ones: say one of the two.")
    with counting("drawing codes") as show:
        repeated = REUSE if reuse else AGAIN if again else ONCE
        return release(model, table, repeated=repeated, people=person, on_rows=show)


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


def _say(released: Released, model: FittedModel, output: Path, keep: list[str], what: str, as_json: bool) -> None:
    if as_json:
        counts = {
            name: getattr(released, name) for name in ("new", "reused", "again", "most_draws", "alike", "exchangeable")
        }
        covered = released.most_draws <= model.draws
        record = {"output": str(output), "rows": len(released), **counts, "covered": covered, "notes": released.notes}
        print(json.dumps({**record, "certificate_draws": model.draws}))
        return
    lines = [f"{len(released):,} {what} written to {output}, one draw per row."]
    if released.reused:
        lines.append(f"{released.reused:,} of them are from codes handed out before: no new draw.")
    if released.exchangeable:
        lines.append(
            f"{released.exchangeable:,} of these are of people with the values of others: if the rows are others, or "
            "in another order than before, they may have got each other's codes, and who knows them by name has two "
            "draws. Keep the order, or say --person from the first release on."
        )
    if released.most_draws > model.draws:
        who = f"{released.again:,} people now have" if released.again else "Some of these people have had"
        lines.append(
            f"{who} up to {released.most_draws} codes handed out; the certificate covers "
            f"{model.draws}. It would have to cover {released.most_draws}: `fairbits certify {model.folder} TABLE "
            f"--draws {released.most_draws}` with new rows says what these tell."
        )
    if released.alike and not released.exchangeable:
        lines.append(
            f"Values of an earlier row stand in {released.alike:,} of the rows, which were taken for other people. Say "
            "--person with a column that names people if there is one."
        )
    if keep:
        lines.append(KEPT.format(", ".join(keep)))
    print("\n".join([*lines, *released.notes]))
