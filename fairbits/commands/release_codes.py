"""`fairbits transform` and `fairbits predict`: codes, or what the model reads in them, for the rows of a table."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairbits.commands.terminal import AsJson, Encoding, ModelPath, Output, Separator, TablePath, advancing, names
from fairbits.errors import InputError
from fairbits.storage import file_errors

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from fairbits.certificate import Released

Keep = Annotated[str | None, typer.Option(help="Columns to copy to the output, comma-separated.")]
Person = Annotated[
    str | None,
    typer.Option(
        help="Columns that identify a person, comma-separated. Without them, a person is recognised by the values the "
        "model reads, and every row of one table is a different person."
    ),
]
Reuse = Annotated[bool, typer.Option("--reuse", help="Write the same code again for people who have one.")]
Again = Annotated[bool, typer.Option("--again", help="Draw new codes; the certificate does not cover them.")]
KEPT = "The certificate does not cover the columns you kept ({}): anyone who gets the file can read them."
AVERAGED = (
    "The certificate does not cover these predictions: they are averaged over many draws, and it covers one draw. "
    "Leave --expected out to get predictions that it covers."
)
OF_CLASS = " The predicted class is covered, unless the recipient also gets the person's code."


def transform(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("bits.csv"),
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Draw a code for every row and write its bits.

    The certificate covers one code per person, so the file released.ledger in the model's folder records who has one.

    Back the ledger up with the model, and share only the bits.
    """
    import pandas as pd

    with file_errors(output):
        files = Files(model, table, output, names(keep), separator=separator, encoding=encoding)
        files.model.need_code()
        bits = list(files.model.method.get_feature_names_out())
        files.check_free(bits)
        released, notes = files.release(names(person), reuse=reuse, again=again)
        files.write(released, lambda codes: pd.DataFrame(codes, columns=bits))
        files.tell(released, notes, "codes", as_json)


def predict(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("predictions.csv"),
    expected: Annotated[
        bool, typer.Option("--expected", help="Average over many codes: more accurate, but not certified.")
    ] = False,
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict the class of every row from one code per row.

    It uses the same ledger as `fairbits transform`; pass --reuse to predict from codes that you have released.
    """
    with file_errors(output):
        files = Files(model, table, output, names(keep), separator=separator, encoding=encoding)
        method = files.model.method
        files.check_free(["prediction", *(f"probability_{name}" for name in method.classes_)])
        if expected:
            if reuse or again or person:
                raise InputError("--expected draws no codes: leave --reuse, --again and --person out.")
            files.expect(as_json)
            return
        files.model.need_code()
        released, notes = files.release(names(person), reuse=reuse, again=again)
        files.write(released, lambda codes: predictions(method, method.decode(codes)))
        files.tell(released, notes, "predictions", as_json)


def predictions(method: Any, probabilities: "np.ndarray") -> "pd.DataFrame":
    """Return the most probable class of every row, and the probability of each."""
    import pandas as pd

    columns = {f"probability_{name}": probabilities[:, i].round(6) for i, name in enumerate(method.classes_)}
    return pd.DataFrame({"prediction": method.classes_[probabilities.argmax(1)], **columns})


class Files:
    """A model, a table to read and one to write: opened, and looked at, before anything is drawn."""

    def __init__(self, model: Path, table: Path, output: Path, keep: Sequence[str] = (), **reading: str | None):
        import torch

        from fairbits.tables.fitted_model import open_model
        from fairbits.tables.table_file import TableFile, check_output

        if output.exists() and table.exists() and output.samefile(table):
            raise InputError(f"{output} is the table itself; name another file with -o.")
        check_output(output)
        torch.set_num_threads(1)  # on a busy machine threads wait for each other
        self.model, self.table = open_model(model), TableFile(table, **reading)
        self.table.check_columns(keep)
        self.output, self.keep = output, list(keep)

    def check_free(self, columns: Sequence[str]) -> None:
        """Raise InputError if a column to keep has the name of one to write."""
        both = sorted(set(columns) & set(self.keep))
        if both or len(set(self.keep)) < len(self.keep):
            raise InputError(f"--keep would write the column {(both or self.keep)[0]!r} twice; rename that column.")

    def release(
        self, person: Sequence[str] = (), *, reuse: bool = False, again: bool = False
    ) -> tuple["Released", list[str]]:
        """Release the codes of the rows through the model's ledger; return them and what was odd about the table."""
        from fairbits.certificate import Ledger, Release
        from fairbits.certificate.ledger import LEDGER_NAME
        from fairbits.certificate.releasing import release_pieces
        from fairbits.tables.fitted_model import RowReader

        if reuse and again:
            raise InputError("--reuse outputs the same codes, --again draws new ones: pass only one of the two.")
        model, reader = self.model, RowReader(self.model, self.table)
        file, draws = model.folder / LEDGER_NAME, 1 if model.limit is None else model.limit.draws
        repeated = "reuse" if reuse else "again" if again else "refuse"
        options: dict[str, Any] = {"repeated": repeated, "certified_draws": draws}
        with advancing() as show, Ledger(file, model.method.code_size, person) as ledger:

            def pieces() -> Iterator[tuple["np.ndarray", "pd.DataFrame | None"]]:
                for X, people in reader.pieces(verbatim=person):
                    yield X, people if person else None
                    show(reader.rows, None, f"drawing codes: {reader.rows:,} rows")

            return release_pieces(model.method, pieces(), ledger, Release(), **options), reader.notes

    def write(self, released: "Released", columns: Callable[["np.ndarray"], "pd.DataFrame"]) -> None:
        """Write what `columns` makes of the bits, beside the columns to keep, a piece of the table at a time."""
        import pandas as pd

        from fairbits.tables.table_file import PIECE_ROWS, TableWriter

        rows, done = len(released), 0
        empty = (pd.DataFrame(index=range(min(PIECE_ROWS, rows - at))) for at in range(0, rows, PIECE_ROWS))
        try:
            with TableWriter(self.output) as writer:
                for carried in self.table.pieces([], verbatim=self.keep) if self.keep else empty:
                    made = columns(released.part(done, done + len(carried)))
                    writer.write(pd.concat([carried, made], axis=1))
                    done += len(carried)
                if done != rows or self.table.has_changed():
                    raise InputError(f"{self.table.path} was changed meanwhile")
        except (OSError, ValueError) as error:
            raise OSError(
                f"{self.output} could not be written ({error}). The codes are in the ledger and count as released: run "
                "again with --reuse to get the same ones."
            ) from error

    def expect(self, as_json: bool) -> None:
        """Write predictions that are averaged over draws."""
        import pandas as pd

        from fairbits.tables.fitted_model import RowReader
        from fairbits.tables.table_file import TableWriter

        model, reader = self.model, RowReader(self.model, self.table)
        with advancing() as show, TableWriter(self.output) as writer:
            for X, carried in reader.pieces(verbatim=self.keep):
                made = predictions(model.method, model.method.predict_proba(X))
                writer.write(pd.concat([carried, made], axis=1))
                show(reader.rows, None, f"predicting: {reader.rows:,} rows")
        if as_json:
            record = {"output": str(self.output), "rows": reader.rows, "covered": False, "notes": reader.notes}
            print(json.dumps(record))
            return
        warning = AVERAGED + (OF_CLASS if model.limit is not None and model.limit.promised else "")
        print(f"{reader.rows:,} predictions written to {self.output}.", warning, *reader.notes, sep="\n")

    def tell(self, released: "Released", notes: list[str], what: str, as_json: bool) -> None:
        """Print what was written, and what the certificate says of it."""
        if as_json:
            counts = ("new", "reused", "again", "most_draws", "alike", "exchangeable", "covered")
            record = {"output": str(self.output), "rows": len(released), **{n: getattr(released, n) for n in counts}}
            print(json.dumps({**record, "notes": notes, "certificate_draws": released.certified_draws}))
            return
        print(f"{len(released):,} {what} written to {self.output}, one draw per row.")
        if released.reused:
            print(f"{released.reused:,} of them use a code that was released before: no new draw.")
        if released.exchangeable:
            print(
                f"{released.exchangeable:,} rows are identical to other rows. If the row order changed, those people "
                "may have swapped codes, and a recipient who knows their names may have two draws of a person. Keep "
                "the order, or use --person from the first release on."
            )
        if not released.covered:
            who = f"{released.again:,} people now have" if released.again else "Some of these people have"
            most, covers = released.most_draws, released.certified_draws
            print(
                f"Warning: {who} up to {most} codes, and the certificate covers {covers}. To see what {most} reveal, "
                f"run `fairbits certify {self.model.folder} TABLE --draws {most}` with new rows."
            )
        if released.alike and not released.exchangeable:
            rows = "1 row is" if released.alike == 1 else f"{released.alike:,} rows are"
            print(
                f"{rows} identical to an earlier one; we treated them as different people. If you have an ID column, "
                "pass it with --person."
            )
        if self.keep:
            print(KEPT.format(", ".join(self.keep)))
        print(*notes, sep="\n", end="\n" * bool(notes))
