"""`fairbits transform` and `fairbits predict`: codes, or what the model reads in them, for the rows of a table."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from fairbits.commands.terminal import AsJson, Encoding, ModelPath, Output, Separator, TablePath, advancing, names
from fairbits.errors import InputError
from fairbits.storage import file_errors
from fairbits.workflow.option_words import WORDS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from fairbits.certificate import Released
    from fairbits.tables.fitted_model import RowReader

    Made = Callable[[np.ndarray], pd.DataFrame]
    Drawn = tuple[Released, list[str]]
    Pieces = Iterator[tuple[np.ndarray, pd.DataFrame | None]]

Keep = Annotated[str | None, Option(help="Columns to copy to the output, comma-separated.")]
Person = Annotated[
    str | None,
    Option(
        help="Columns that identify a person, comma-separated. Without them, a person is recognised by the values the "
        "model reads, and every row of one table is a different person."
    ),
]
Reuse = Annotated[bool, Option("--reuse", help="Write the same code again for people who have one.")]
Again = Annotated[bool, Option("--again", help="Draw new codes; the certificate does not cover them.")]


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
        released, notes = files.draw(names(person), reuse=reuse, again=again)
        files.release(released, notes, "codes", lambda codes: pd.DataFrame(codes, columns=bits), as_json)


def predict(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("predictions.csv"),
    expected: Annotated[
        bool, Option("--expected", help="Average over many codes: more accurate, but not certified.")
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
    import pandas as pd

    with file_errors(output):
        files = Files(model, table, output, names(keep), separator=separator, encoding=encoding)
        method = files.model.method
        columns = [f"probability_{name}" for name in method.classes_]
        files.check_free(["prediction", *columns])

        def made(probabilities: "np.ndarray") -> "pd.DataFrame":
            found = pd.DataFrame(probabilities.round(6), columns=columns)
            found.insert(0, "prediction", method.classes_[probabilities.argmax(1)])
            return found

        if expected:
            if reuse or again or person:
                raise InputError("--expected draws no codes: leave --reuse, --again and --person out.")
            files.expect(made, as_json)
            return
        files.model.need_code()
        released, notes = files.draw(names(person), reuse=reuse, again=again)
        files.release(released, notes, "predictions", lambda codes: made(method.decode(codes)), as_json)


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

    def draw(self, person: Sequence[str] = (), *, reuse: bool = False, again: bool = False) -> "Drawn":
        """Draw codes of the rows and enter them in the model's ledger; return them and what was odd about the table."""
        from fairbits.certificate import Ledger, Release
        from fairbits.certificate.ledger import LEDGER_NAME
        from fairbits.certificate.releasing import release_pieces
        from fairbits.tables.fitted_model import RowReader

        if reuse and again:
            raise InputError("--reuse outputs the same codes, --again draws new ones: pass only one of the two.")
        repeated = "reuse" if reuse else "again" if again else "refuse"
        model, reader = self.model, RowReader(self.model, self.table)
        draws = 1 if model.limit is None else model.limit.draws
        with Ledger(model.folder / LEDGER_NAME, model.method.code_size, person) as ledger:
            pieces = self._encoded(reader, "drawing codes", person)
            return release_pieces(model.method, pieces, ledger, Release(), repeated, draws), reader.notes

    def _encoded(self, reader: "RowReader", doing: str, person: Sequence[str] = ()) -> "Pieces":
        """Yield rows as the method takes them and the columns that identify people, and show how many are done."""
        with advancing() as show:
            for X, people in reader.pieces(verbatim=person):
                yield X, people if person else None
                show(reader.rows, None, f"{doing}: {reader.rows:,} rows")

    def write(self, values: "np.ndarray", made: "Made") -> None:
        """Write what is made of the values of the rows, beside the columns to keep, a piece of the table at a time."""
        import pandas as pd

        from fairbits.tables.table_file import PIECE_ROWS, TableWriter

        rows, done = len(values), 0
        empty = (pd.DataFrame(index=range(min(PIECE_ROWS, rows - at))) for at in range(0, rows, PIECE_ROWS))
        with TableWriter(self.output) as writer:
            for carried in self.table.pieces([], verbatim=self.keep) if self.keep else empty:
                writer.write(pd.concat([carried, made(values[done : done + len(carried)])], axis=1))
                done += len(carried)
            if done != rows or self.table.has_changed():
                raise InputError(f"{self.table.path} was changed meanwhile.")

    def expect(self, made: "Made", as_json: bool) -> None:
        """Write predictions that are averaged over draws."""
        import numpy as np

        from fairbits.tables.fitted_model import RowReader

        model, reader = self.model, RowReader(self.model, self.table)
        pieces = self._encoded(reader, "predicting")
        self.write(np.concatenate([model.method.predict_proba(X) for X, _ in pieces]), made)
        record = {"output": str(self.output), "rows": reader.rows, "covered": False, "notes": reader.notes}
        covered = "averaged_but_class" if model.limit is not None and model.limit.promised else "averaged"
        self._print(record, ["expected", covered], as_json, what="predictions")

    def release(self, released: "Released", notes: list[str], what: str, made: "Made", as_json: bool) -> None:
        """Write what is made of codes that count as released; print what the certificate says of it."""
        try:
            self.write(released.codes, made)
        except (OSError, ValueError) as error:
            text = WORDS["releases"]["unwritten"].format(output=self.output, error=str(error).rstrip("."))
            raise OSError(text) from error
        counts = ("new", "reused", "again", "most_draws", "alike", "exchangeable", "covered")
        record = {"output": str(self.output), "rows": len(released.codes), **{n: getattr(released, n) for n in counts}}
        record |= {"notes": notes, "certificate_draws": released.certified_draws}
        said = {
            "drawn": True,
            "reused": released.reused,
            "exchangeable": released.exchangeable,
            "not_covered": not released.covered,
            "alike": released.alike and not released.exchangeable,
            "kept": self.keep,
        }
        who = f"{released.again:,} people now have" if released.again else "Some of these people have"
        identical = "1 row is" if released.alike == 1 else f"{released.alike:,} rows are"
        words = {"what": what, "who": who, "identical": identical, "kept": ", ".join(self.keep)}
        self._print(record, [name for name, holds in said.items() if holds], as_json, model=self.model.folder, **words)

    def _print(self, record: dict[str, Any], said: list[str], as_json: bool, **words: Any) -> None:
        lines = [WORDS["releases"][name].format(**record, **words) for name in said]
        print(json.dumps(record) if as_json else "\n".join([*lines, *record["notes"]]))
