"""`fairbits transform`: a code for every row of a table."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from fairbits.commands.released_files import Files
from fairbits.commands.terminal import (
    AsJson,
    Cluster,
    Encoding,
    ModelPath,
    Output,
    Separator,
    ShardOf,
    TablePath,
    Workers,
    names,
)
from fairbits.storage import file_errors

Keep = Annotated[str | None, Option(help="Columns to copy to the output, comma-separated.")]
Person = Annotated[
    str | None,
    Option(
        help="Columns that identify a person, comma-separated. Without them, a person is recognised by the values the "
        "model reads, and every row of one table is a different person."
    ),
]
Reuse = Annotated[bool, Option("--reuse", help="With a ledger: write the same code again for people who have one.")]
SafeCells = Annotated[
    bool, Option("--safe-cells", help="Put ' before text in a CSV that a spreadsheet would run as a formula.")
]
LedgerFile = Annotated[
    Path | None,
    Option(
        "--ledger",
        help="File that records who has a code; several models may share it.",
        show_default="random codes, or with --person: released.ledger in the model's folder",
    ),
]
AcceptLoss = Annotated[bool, Option("--accept-loss", help="Go on although the ledger of the last release is lost.")]
Zeros = StrEnum("Zeros", ["same", "different"])
LeadingZeros = Annotated[
    Zeros | None, Option(help="With --person: whether 7 and 007 are the same person.", show_default="ask")
]
Key = Annotated[
    Path | None,
    Option(help="Random codes: file of `fairbits key`. Whoever --person names has the same code everywhere."),
]
Packed = Annotated[bool, Option("--packed", help="Write all bits of a code as one whole number.")]
Again = Annotated[bool, Option("--again", help="With a ledger: write new codes; the certificate does not cover them.")]


def transform(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("bits.csv"),
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    safe_cells: SafeCells = False,
    ledger: LedgerFile = None,
    accept_loss: AcceptLoss = False,
    leading_zeros: LeadingZeros = None,
    key: Key = None,
    packed: Packed = False,
    workers: Workers = 1,
    shard: ShardOf = None,
    cluster: Cluster = None,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Write a code for every row: the bits that you may share.

    A person with the same data always has the same code. Only models of --gamma draw random codes: the certificate then
    covers one per person, and a ledger records who has one. Back it up with the model. With --person or --ledger, the
    codes of any model are recorded, so that a second model's release of the same people is noticed.

    Of a model of `fairbits fit --for decisions`, the class alone is certified: it is written in place of a code. With a
    folder as --output, the codes are Parquet parts; run again after an interruption, and the missing ones are written.
    """
    with file_errors(output):
        files, released = Files(model, table, output, names(keep), separator=separator, encoding=encoding), None
        drawing = {"person": person, "reuse": reuse, "again": again, "ledger": ledger, "accept_loss": accept_loss}
        drawing |= {"leading_zeros": leading_zeros, "key": key}
        if files.in_parts(workers=workers, shard=shard, cluster=cluster):
            files.write_parts("codes", drawing, packed=packed)
        elif files.model.decides:
            released = files.write_decisions(safe_cells, **drawing)
        else:
            files.model.need_code()
            released = files.write_codes(safe_cells, packed=packed, **drawing)
    files.tell("decisions" if files.model.decides else "codes", released, as_json)
