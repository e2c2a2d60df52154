"""Commands that use a model or a table: declarations; what they do is imported when they run."""

from pathlib import Path
from typing import Annotated

import typer

from fairbits.commands.arguments import complete_model, names

ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="The folder that `fairbits fit` wrote.", autocompletion=complete_model, show_default=False
    ),
]
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file.", show_default=False)]
Sensitive = Annotated[str | None, typer.Option(help="The sensitive columns, with commas between.")]
Keep = Annotated[str | None, typer.Option(help="Columns to carry along, such as an identifier, with commas between.")]
Person = Annotated[
    str | None,
    typer.Option(
        help="Columns that name a person. Without, rows with the same values in all columns that the model reads are "
        "the same person (rows of one table are different people)."
    ),
]
Reuse = Annotated[bool, typer.Option("--reuse", help="Hand out the same code again where there has been one.")]
Again = Annotated[bool, typer.Option("--again", help="Draw once more; the certificate does not cover that.")]
Separator = Annotated[str | None, typer.Option(help="Of the columns of a CSV; found if not given.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV, such as latin-1; UTF-8 if not given.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of every bound and interval.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the record instead of words.")]


def transform(
    model: ModelPath,
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file for the bits.")] = Path(
        "bits.csv"
    ),
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Draw a code for every row and write its bits: what may be handed on.

    The random numbers are the operating system's. The ledger in the model's folder (released.ledger) remembers by keyed
    hashes whose code was handed out, and which, so that nobody is drawn twice: two draws of a person tell more than
    the certificate covers. Keep it with the model, make copies of it, and do not hand it on.
    """
    from fairbits.commands.release_codes import run_transform

    run_transform(
        model,
        table,
        output,
        keep=names(keep),
        person=names(person),
        reuse=reuse,
        again=again,
        reading={"separator": separator, "encoding": encoding},
        as_json=as_json,
    )


def predict(
    model: ModelPath,
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file for the predictions.")] = Path(
        "predictions.csv"
    ),
    expected: Annotated[
        bool, typer.Option("--expected", help="Average over draws: more accurate, but no certificate covers it.")
    ] = False,
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Write the class of every row and the probability of each class, from one drawn code per row.

    The code goes through the same ledger as that of `fairbits transform`: after it, say --reuse.
    """
    from fairbits.commands.release_codes import run_predict

    run_predict(
        model,
        table,
        output,
        keep=names(keep),
        person=names(person),
        reuse=reuse,
        again=again,
        expected=expected,
        reading={"separator": separator, "encoding": encoding},
        as_json=as_json,
    )


def audit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A CSV or Parquet file: anybody's features, scores or codes, beside S."),
    ],
    sensitive: Sensitive = None,
    label: Annotated[
        str | None, typer.Option(help="The label: left out, or with --model what it is scored on.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Audit this model on the rows of FILE.", autocompletion=complete_model)
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="What to audit, names or patterns such as 'bit*'; all other columns if not given."),
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas between.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Also a forest, a network and neighbours, on all rows.")] = False,
    confidence: Confidence = 0.95,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the record there, as JSON.")] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Say what a table of values tells about sensitive columns: information, bounds, probes that try to read them."""
    from fairbits.commands.audit import run_audit

    run_audit(
        file,
        names(sensitive),
        label=label,
        model=model,
        columns=names(columns),
        drop=names(drop),
        full=full,
        confidence=confidence,
        output=output,
        reading={"separator": separator, "encoding": encoding},
        as_json=as_json,
    )


def certify(
    model: ModelPath,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file of rows that played no part in the fit.")
    ],
    sensitive: Sensitive = None,
    confidence: Confidence = 0.95,
    draws: Annotated[int, typer.Option(min=1, max=16, help="Codes of a person that a receiver gets.")] = 1,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Prove from new rows what a model's code tells, and say whether they contradict what was said of it before.

    Exit code 4: contradicted. Exit code 3: the rows are those of the fit, which prove nothing.
    """
    from fairbits.commands.certify import run_certify

    run_certify(
        model,
        table,
        names(sensitive),
        confidence=confidence,
        draws=draws,
        reading={"separator": separator, "encoding": encoding},
        as_json=as_json,
    )
