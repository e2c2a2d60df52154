"""Random codes of rows: drawn with a ledger, which counts people, or with a key, which needs none."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.certificate import Ledger, Release, Released
from fairbits.certificate.ledger import LEDGER_NAME, RECEIPT_ENDING
from fairbits.certificate.releasing import release_pieces
from fairbits.commands.terminal import names
from fairbits.errors import InputError
from fairbits.workflow.released_columns import Columns, made_codes

if TYPE_CHECKING:
    from fairbits.commands.transform import Files


def ledger_codes(files: "Files", options: dict[str, Any]) -> tuple[np.ndarray, Released]:
    """Return codes that are entered in a ledger."""
    repeated = [name for name in ("reuse", "again") if options.get(name)] or ["refuse"]
    if len(repeated) > 1:
        raise InputError("--reuse outputs the same codes, --again new ones: pass only one of the two.")
    model, person = files.model, names(options["person"])
    own, zeros = model.folder / LEDGER_NAME, options.get("leading_zeros")
    receipt, lost = own.with_name(own.name + RECEIPT_ENDING), options.get("accept_loss", False)
    with Ledger(options.get("ledger") or own, person, receipt=receipt, accept_loss=lost) as ledger:
        pieces, what = files.encoded("computing codes", person), Release(hard=model.is_hard)
        draws = 1 if model.limit is None else model.limit.draws
        released = release_pieces(model.method, pieces, ledger, what, repeated[0], draws, zeros)
    files.counted = bool(person)
    return released.codes, released


def keyed_codes(files: "Files", options: dict[str, Any]) -> np.ndarray:
    """Return codes that a key draws."""
    others = {name for name, value in options.items() if value} - {"key", "person", "leading_zeros"}
    if others:
        raise InputError(f"--{min(others).replace('_', '-')} is for a ledger, and --key needs none: leave it out.")
    columns = Columns("codes", False, *check_keyed(files, options))
    return np.concatenate(
        [made_codes(files.model, piece, columns) for piece in files.pieces("computing codes", columns.person)]
    )


def check_keyed(files: "Files", drawing: dict[str, Any]) -> tuple[tuple[str, ...], str, str | None]:
    """Return the columns of a person, the file of the key and what leading zeros mean."""
    if files.model.is_hard or files.model.decides:
        files.refuse_drawing(["key"])
    if not (person := tuple(names(drawing["person"]))):
        raise InputError("--key needs to know which person each row belongs to.", remedy="Pass --person.")
    files.table.check_columns(person)
    files.keyed = True
    return person, str(Path(drawing["key"]).absolute()), drawing["leading_zeros"]
