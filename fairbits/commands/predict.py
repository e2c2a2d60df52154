"""`fairbits predict`: the class of every row of a table, from its code."""

from pathlib import Path
from typing import Annotated

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
    names,
)
from fairbits.commands.transform import (
    AcceptLoss,
    Again,
    Files,
    Keep,
    Key,
    LeadingZeros,
    LedgerFile,
    Person,
    Reuse,
    SafeCells,
)
from fairbits.errors import InputError
from fairbits.storage import file_errors


def predict(
    model: ModelPath,
    table: TablePath,
    output: Output = Path("predictions.csv"),
    expected: Annotated[
        bool, Option("--expected", help="Random codes: average over many draws; more accurate, but not certified.")
    ] = False,
    probabilities: Annotated[
        bool, Option("--probabilities", help="Also write the probability of each class, if it is certified.")
    ] = False,
    keep: Keep = None,
    person: Person = None,
    reuse: Reuse = False,
    again: Again = False,
    safe_cells: SafeCells = False,
    ledger: LedgerFile = None,
    accept_loss: AcceptLoss = False,
    leading_zeros: LeadingZeros = None,
    key: Key = None,
    workers: Workers = 1,
    shard: ShardOf = None,
    cluster: Cluster = None,
    separator: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Write the decision about every row: the predicted class, which the certificate covers.

    A model of `fairbits fit --for codes` reads it off the code. Of one --for decisions, the class alone is certified,
    and --probabilities are refused. A random code uses the ledger of `fairbits transform`; pass --reuse to predict
    from codes that you have released.
    """
    import numpy as np

    from fairbits.workflow.released_columns import Columns, class_frame, prediction_frame

    drawing = {"person": person, "reuse": reuse, "again": again, "ledger": ledger, "accept_loss": accept_loss}
    drawing |= {"leading_zeros": leading_zeros, "key": key}
    wanted = "probabilities" if probabilities else "classes"
    with file_errors(output):
        files = Files(model, table, output, names(keep), separator=separator, encoding=encoding)
        if files.model.decides and probabilities:
            remedy = "Leave it out, or fit a model with --for codes."
            raise InputError("--probabilities: of this model, the class alone is certified.", remedy=remedy)
        if files.in_parts(workers=workers, shard=shard, cluster=cluster):
            files.write_parts(wanted, drawing | {"expected": expected})
            files.tell("decisions" if files.model.decides else "predictions", None, as_json)
            return
        if files.model.decides:
            files.tell("decisions", files.write_decisions(safe_cells, **drawing, expected=expected), as_json)
            return
        method, released = files.model.method, None
        files.check_free(Columns(wanted).names(files.model))
        if expected and not files.model.is_hard:
            if any(drawing.values()):
                raise InputError("--expected draws no codes: leave the options for random codes out.")
            found = np.concatenate([method.predict_proba(X) for X, _ in files.encoded("predicting")])
            predictions = prediction_frame(files.model, found, probabilities=probabilities)
        else:
            files.model.need_code()
            codes, released = files.codes(**drawing, expected=expected)
            predictions = class_frame(files.model, codes, probabilities=probabilities)
        files.write(predictions, released, safe_cells)
    files.tell("predictions", released, as_json)
