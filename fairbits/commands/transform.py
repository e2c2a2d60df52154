"""`fairbits transform`: a code for every row."""

from pathlib import Path
from typing import Annotated

import typer

from fairbits.commands import arguments
from fairbits.storage import file_errors


def transform(
    model: arguments.ModelPath,
    table: arguments.TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")] = Path("bits.csv"),
    keep: arguments.Keep = None,
    person: arguments.Person = None,
    reuse: arguments.Reuse = False,
    again: arguments.Again = False,
    separator: arguments.Separator = None,
    encoding: arguments.Encoding = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Draw a code for every row and write its bits.

    The certificate covers one code per person, so the file released.ledger in the model's folder records who has one.

    Back the ledger up with the model, and share only the bits.
    """
    from fairbits.commands.release_codes import run_transform

    with file_errors(output):
        run_transform(
            model,
            table,
            output,
            keep=arguments.names(keep),
            person=arguments.names(person),
            reuse=reuse,
            again=again,
            reading={"separator": separator, "encoding": encoding},
            as_json=as_json,
        )
