"""`fairbits predict`: a class for every row."""

from pathlib import Path
from typing import Annotated

import typer

from fairbits.commands import arguments
from fairbits.storage import file_errors


def predict(
    model: arguments.ModelPath,
    table: arguments.TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")] = Path(
        "predictions.csv"
    ),
    expected: Annotated[
        bool, typer.Option("--expected", help="Average over many codes: more accurate, but not certified.")
    ] = False,
    keep: arguments.Keep = None,
    person: arguments.Person = None,
    reuse: arguments.Reuse = False,
    again: arguments.Again = False,
    separator: arguments.Separator = None,
    encoding: arguments.Encoding = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Predict the class of every row from one code per row.

    It uses the same ledger as `fairbits transform`; pass --reuse to predict from codes that you have released.
    """
    from fairbits.commands.release_codes import run_predict

    with file_errors(output):
        run_predict(
            model,
            table,
            output,
            keep=arguments.names(keep),
            person=arguments.names(person),
            reuse=reuse,
            again=again,
            expected=expected,
            reading={"separator": separator, "encoding": encoding},
            as_json=as_json,
        )
