"""Errors and warnings in the words of the command line: columns and options in place of Python's parameters."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairbits.auditing import Audit

DATA = {"X": "The table", "y": "The label", "sensitive_features": "The sensitive column"}
OPTIONS = {"max_epochs": "--epochs", "n_bins": "--bins"}  # others have the parameter's own name
PYTHON = re.compile(r"\b\w+=|\w\(|\b[a-z]+_[a-z_]+\b")  # a remedy in Python's words helps nobody on the command line
CALIBRATION_SHARE = 0.24  # of a table's rows
AGAIN = "--again to draw new ones, which the certificate does not cover."
NO_TASK = "the scores need a model (--model) and its label (--label)."


def _more_rows(error: Any) -> str:
    if error.rows_needed is None:
        return "Try a larger limit."
    return f"A limit of {error.limit:g} needs a table of about {error.rows_needed / CALIBRATION_SHARE:,.0f} rows."


# By the class of the error or warning: what to do on the command line.
REMEDIES: dict[str, str | Callable[[Any], str]] = {
    "SmallGroupError": "Merge the group with another one, or leave its rows out.",
    "UnseenGroupError": "Leave these rows out, or merge the group with a known one.",
    "ColumnsMismatchError": "Use a table with the columns of the fit.",
    "TextEncodingError": "Save the file as UTF-8, or pass its encoding, such as --encoding latin-1.",
    "SeparatorError": "Pass --separator if the columns are not separated by comma, semicolon, tab, bar or space.",
    "ModelExistsError": "Name another folder.",
    "BinnedSensitiveFeaturesWarning": "To choose the groups yourself, make a column that names them.",
    "UndefinedGapError": "Merge groups, or use a table with more rows.",
    "CollapsedCodeWarning": "Try a larger limit, a smaller --gamma or more --epochs.",
    "VanishedClassWarning": "Try a larger limit or a smaller --gamma, or merge rare classes.",
    "SaturatedPenaltyWarning": "Try a smaller --code-size.",
    "LessFairWarning": "Do not use this model as it is: try another --gamma or more --epochs, and compare again.",
    "SensitiveFeatureInXWarning": "Leave it out with --drop, unless the model is meant to read it.",
    "SmallGroupWarning": "Use more rows, or merge groups.",
    "TrainingRowsWarning": "Use rows that were kept apart from the fit.",
    "AlreadyReleasedError": f"Use --reuse to output the same codes (also after an interrupted run), or {AGAIN}",
    "OtherReleaseError": f"Use {AGAIN}",
    "OtherPeopleError": lambda e: f"Pass --person {','.join(e.people)}." if e.people else "Leave --person out.",
    "NotCertifiedError": _more_rows,
}


def worded(error: Any) -> str:
    """Return what an error or a warning says, with the remedy that the command line has for it.

    >>> from fairbits.errors import InputError
    >>> worded(InputError("must lie between 0 and 1.", argument="max_disparity", value=2, remedy="Pass alpha=0.1."))
    '--max-disparity 2 must lie between 0 and 1.'
    """
    about = ""
    if error.argument in DATA:
        about = DATA[error.argument]
    elif error.argument is not None:
        about = f"{OPTIONS.get(error.argument, '--' + error.argument.replace('_', '-'))} {error.value}"
    remedy = REMEDIES.get(type(error).__name__, "" if PYTHON.search(error.remedy) else error.remedy)
    return f"{about} {error.problem} {remedy(error) if callable(remedy) else remedy}".strip()


def audit_in_words(*what: Any, **options: Any) -> tuple["Audit", list[Warning]]:
    """Audit, and return the record with its concerns in the words of the command line, and the concerns themselves."""
    from fairbits.auditing import audit  # here, as errors are worded without it

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = audit(*what, **options)
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    words = {str(concern): worded(concern) for concern in concerns}
    unavailable = found.unavailable | ({"task": NO_TASK} if "task" in found.unavailable else {})
    said = tuple(words.get(str(concern), str(concern)) for concern in found.concerns)
    return replace(found, concerns=said, unavailable=unavailable), concerns
