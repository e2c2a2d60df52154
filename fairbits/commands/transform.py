"""`fairbits transform`: a code for every row of a table; and what `fairbits predict`, too, reads and writes."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

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
    advancing,
    names,
)
from fairbits.errors import InputError
from fairbits.storage import file_errors
from fairbits.workflow.option_words import WORDS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from fairbits.certificate import Released
    from fairbits.tables.fitted_model import RowPiece

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
AcceptLoss = Annotated[bool, Option("--accept-loss", help="Continue although the ledger of the last release is lost.")]
Zeros = StrEnum("Zeros", ["same", "different"])
LeadingZeros = Annotated[
    Zeros | None, Option(help="With --person: whether 7 and 007 are the same person.", show_default="ask")
]
Key = Annotated[
    Path | None,
    Option(help="Random codes: key file of `fairbits key`. Each person of --person has the same code everywhere."),
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


class Files:
    """A model, a table to read and one to write: opened, and looked at, before anything is drawn."""

    def __init__(self, model: Path, table: Path, output: Path, keep: Sequence[str] = (), **reading: str | None):
        import torch

        from fairbits.tables.file_formats import check_output, need_pyarrow
        from fairbits.tables.fitted_model import RowReader, open_model
        from fairbits.tables.table_file import open_table

        if output.exists() and table.exists() and output.samefile(table):
            raise InputError(f"{output} is the table itself; name another file with -o.")
        if self.is_folder(output):
            need_pyarrow()
        else:
            check_output(output)
        torch.set_num_threads(1)  # on a busy machine threads wait for each other
        self.model, self.table = open_model(model), open_table(table, **reading)
        self.reader, self.output, self.keep = RowReader(self.model, self.table), output, list(keep)
        self.counted = False  # whether the ledger knows these people by their identifiers
        self.keyed = False  # whether a key draws the codes
        self.parts: Any = None  # what was written, if it is parts
        self.how: dict[str, Any] = {}
        self.table.check_columns(keep)

    @staticmethod
    def is_folder(output: Path) -> bool:
        """Return whether a path to write is a folder of parts, by its name."""
        return not output.suffix or output.is_dir()

    def in_parts(self, *, workers: int, shard: str | None, cluster: str | None) -> bool:
        """Return whether to write parts; keep how, or raise InputError if there is no folder to write them to."""
        self.how = {"workers": workers, "cluster": cluster, "shard": None}
        if shard is not None:
            from fairbits.workers import Shard

            self.how["shard"] = Shard.of(shard)
        given = {"workers": workers > 1, "cluster": cluster, "shard": shard}
        if self.is_folder(self.output):
            return True
        if named := [f"--{name}" for name, value in given.items() if value]:
            problem = f"{named[0]} writes parts, and {self.output} is one file."
            raise InputError(problem, remedy=f"Name a folder, such as -o {self.output.stem}.")
        return False

    def write_parts(self, what: str, drawing: dict[str, Any], *, packed: bool = False) -> None:
        """Write the parts that are missing; of a random code they need a key."""
        from fairbits.workflow.part_files import write_parts
        from fairbits.workflow.released_columns import Columns

        if not self.model.decides:
            self.model.need_code()
        given = [name for name, value in drawing.items() if value]
        if self.model.is_hard or self.model.decides:
            self.refuse_drawing(given, in_parts=True)
        elif others := set(given) - {"key", "person", "leading_zeros"}:
            raise InputError(f"--{min(others).replace('_', '-')} needs a ledger, and parts have none: leave it out.")
        elif not drawing["key"]:
            remedy = "Pass --key and --person, or write one file: -o bits.csv."
            raise InputError("Parts of random codes are drawn with a key.", remedy=remedy)
        keyed: tuple[Any, ...] = ()
        if drawing["key"]:
            from fairbits.commands.drawn_codes import check_keyed

            keyed = check_keyed(self, drawing)
        columns = Columns("classes" if self.model.decides else what, packed, *keyed)
        self.check_free(columns.names(self.model))
        with advancing() as show:

            def progress(done: int, count: int, rows: int) -> None:
                show(done, count, f"{rows:,} rows in {done:,} of {count:,} parts")

            show(0, None, "computing codes")
            self.parts = write_parts(
                self.model, self.table, self.output, columns, self.keep, **self.how, progress=progress
            )
        self.reader = self.parts.reader

    def write_codes(self, safe_cells: bool, *, packed: bool, **drawing: Any) -> "Released | None":
        """Write the code of every row in one file."""
        from fairbits.workflow.released_columns import Columns, code_frame

        self.check_free(Columns("codes", packed).names(self.model))
        codes, released = self.codes(**drawing)
        self.write(code_frame(self.model, codes, packed=packed), released, safe_cells)
        return released

    def check_free(self, columns: Sequence[str]) -> None:
        """Raise InputError if a column to keep has the name of one to write."""
        both = sorted(set(columns) & set(self.keep))
        if both or len(set(self.keep)) < len(self.keep):
            raise InputError(f"--keep would write the column {(both or self.keep)[0]!r} twice; rename that column.")

    def encoded(self, doing: str, person: Sequence[str] = ()) -> Iterator[Any]:
        """Yield rows as the method takes them, and the columns that identify people."""
        for piece in self.pieces(doing, person):
            yield piece.X, piece.more if person else None

    def pieces(self, doing: str, person: Sequence[str] = ()) -> "Iterator[RowPiece]":
        """Yield rows, and show how many are done."""
        with advancing() as show:
            for piece in self.reader.pieces(verbatim=person):
                yield piece
                show(self.reader.rows, None, f"{doing}: {self.reader.rows:,} rows")
        self.reader.finish()

    def codes(self, **options: Any) -> tuple["np.ndarray", "Released | None"]:
        """Return the codes of the rows, entered in a ledger if they are random or the options ask for it."""
        import numpy as np

        given = {name for name, value in options.items() if value}
        if self.model.is_hard and not options.get("key"):
            counted = {"person", "ledger"} & given
            self.refuse_drawing([name for name in options if name in given and (name == "expected" or not counted)])
            if not counted:
                method = self.model.method
                return np.concatenate([method.transform(X) for X, _ in self.encoded("computing codes")]), None
        from fairbits.commands.drawn_codes import keyed_codes, ledger_codes

        return (keyed_codes(self, options), None) if options.get("key") else ledger_codes(self, options)

    def refuse_drawing(self, given: list[str], *, in_parts: bool = False) -> None:
        """Raise InputError if options for random codes were given to a model that draws none."""
        if in_parts and {"person", "ledger"} & set(given):
            raise InputError(
                "Counting people needs a ledger, and parts have none.", remedy="Write one file: -o bits.csv."
            )
        if given:
            named = [f"--{name.replace('_', '-')}" for name in given]
            which = f"{' and '.join(named)} {'is' if len(given) == 1 else 'are'}"
            remedy = "This model gives a person the same code every time: leave it out."
            raise InputError(f"{which} for random codes.", remedy=remedy)

    def write_decisions(self, safe_cells: bool, **options: Any) -> "Released | None":
        """Write the class of every row: of this model, it alone is certified. --person and --ledger count people."""
        import numpy as np
        import pandas as pd

        self.check_free(["prediction"])
        method, released = self.model.method, None
        if self.model.is_hard and (options["person"] or options["ledger"]):
            codes, released = self.codes(**options)
            found = method.classes_[method.decode(codes).argmax(1)]
        else:
            self.refuse_drawing([name for name, value in options.items() if value])
            found = np.concatenate([method.predict(X) for X, _ in self.encoded("deciding")])
        self.write(pd.DataFrame({"prediction": found}), released, safe_cells)
        return released

    def write(self, made: "pd.DataFrame", released: "Released | None", safe_cells: bool = False) -> None:
        """Write what was made of the rows beside the columns to keep; codes that were drawn count as released."""
        from fairbits.tables.file_formats import write_table

        try:
            write_table(self.output, self._beside_kept(made), safe_cells=safe_cells)
        except (OSError, ValueError) as error:
            if released is None:
                raise
            text = WORDS["releases"]["unwritten"].format(output=self.output, error=str(error).rstrip("."))
            raise OSError(text) from error

    def _beside_kept(self, made: "pd.DataFrame") -> "Iterator[pd.DataFrame]":
        import pandas as pd

        done = 0
        for kept in self.table.pieces([], verbatim=self.keep) if self.keep else [made[[]]]:
            own = made[done : done + len(kept)].reset_index(drop=True)
            yield pd.concat([kept, own], axis=1)
            done += len(kept)
        self.table.check_unchanged()

    def tell(self, what: str, released: "Released | None", as_json: bool) -> None:
        """Print what was written, and what the certificate says of it."""
        record: dict[str, Any] = {"output": str(self.output), "rows": self.reader.rows}
        words: dict[str, Any] = {"what": what, "kept": ", ".join(self.keep), "model": self.model.folder}
        computed, counted = self.model.is_hard or self.model.decides, dict[str, Any]()
        if released is not None:
            counts = ("new", "reused", "again", "most_draws", "alike", "exchangeable", "other_models", "covered")
            record |= {name: getattr(released, name) for name in counts}
            record["certificate_draws"] = released.certified_draws
            words["who"] = f"{released.again:,} people now have" if released.again else "Some of these people have"
            words["identical"] = "1 row is" if released.alike == 1 else f"{released.alike:,} rows are"
            counted = {
                "reused": released.reused and not computed,
                "exchangeable": released.exchangeable,
                "changed" if computed else "not_covered": released.covered is False,
                "unnamed": released.covered is None and not released.named,
                "incomplete": not released.complete,
                "other_models": released.other_models,
                "alike": released.alike and not released.exchangeable and not computed,
            }
        if computed:
            refused = (self.model.record or {}).get("certified") is False
            certified = self.model.limit is not None and not refused
            record["covered"] = certified and (released is None or released.covered)
            said = {"computed": True, "covered": record["covered"], "decided": self.model.decides, "refused": refused}
            said |= {**counted, "uncounted": not self.counted, "count": not self.counted, "kept": self.keep}
        elif self.keyed:
            record["covered"] = True
            said = {"drawn": True, "keyed": True, "kept": self.keep}
        elif released is None:
            record["covered"] = False
            promised = self.model.limit is not None and self.model.limit.promised
            said = {"expected": True, "averaged_but_class": promised, "averaged": not promised}
        else:
            said = {"drawn": True, **counted, "kept": self.keep}
        if self.parts is not None:
            record |= {"parts": self.parts.parts, "before": self.parts.before, "missing": self.parts.missing}
            said = {"parts": True, "parts_missing": self.parts.missing} | said
        record["notes"] = self.reader.notes
        lines = [WORDS["releases"][name].format(**record, **words) for name, holds in said.items() if holds]
        print(json.dumps(record) if as_json else "\n".join([*lines, *record["notes"]]))
