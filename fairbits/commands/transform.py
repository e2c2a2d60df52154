"""`fairbits transform`: a code for every row of a table."""

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
    """Write a code for every row: the bits that you may share.

    A person with the same data always has the same code. Only models of --gamma draw random codes: the certificate then
    covers one per person, and released.ledger in the model's folder records who has one. Back it up with the model.
    """
    import pandas as pd

    with file_errors(output):
        files = Files(model, table, output, names(keep), separator=separator, encoding=encoding)
        files.model.need_code()
        files.check_free(bits := list(files.model.method.get_feature_names_out()))
        if files.model.is_hard:
            released, codes = None, files.hard_codes(person=person, reuse=reuse, again=again)
        else:
            released = files.draw(names(person), reuse=reuse, again=again)
            codes = released.codes
        files.write(pd.DataFrame(codes, columns=bits), released)
    files.tell("codes", released, as_json)
