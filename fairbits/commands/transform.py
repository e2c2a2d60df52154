"""`fairbits transform`: a random code for every row of a table."""

from pathlib import Path

from fairbits.commands.release_codes import Again, Files, Keep, Person, Reuse
from fairbits.commands.terminal import AsJson, Encoding, ModelPath, Output, Separator, TablePath, names
from fairbits.storage import file_errors


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
        files.check_free(bits := list(files.model.method.get_feature_names_out()))
        released = files.draw(names(person), reuse=reuse, again=again)
        files.write(pd.DataFrame(released.codes, columns=bits), released)
    files.tell("codes", released, as_json)
