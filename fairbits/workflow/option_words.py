"""Errors and warnings in the words of the command line: columns and options in place of Python's parameters."""

import re

DATA = {"X": "The table", "y": "The label", "sensitive_features": "The sensitive column"}
OPTIONS = {"max_epochs": "--epochs", "n_bins": "--bins", "code_size": "--code-size", "data_home": "--data-home"}
OPTIONS |= {"max_disparity": "--max-disparity", "max_information": "--max-information"}
OPTIONS |= {name: f"--{name}" for name in ("confidence", "draws", "encoding", "separator")}
PYTHON = re.compile(r"\b\w+=|\w\(|\b[a-z]+_[a-z_]+\b|\bfrom X\b|\bpandas\b")
REMEDIES = {  # by the class of the error or warning: what to do on the command line
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
    "RepeatedDrawWarning": "Pass --reuse to release the first codes again, or certify the model with more --draws.",
    "NotCertifiedError": "Try a larger limit, or a table with more rows: 24% of them are calibration rows.",
}


def worded(error: Exception) -> str:
    """Return what an error or a warning says, with the remedy that the command line has for it.

    >>> from fairbits.errors import InputError
    >>> worded(InputError("must lie between 0 and 1.", argument="max_disparity", value=2, remedy="Pass alpha=0.1."))
    '--max-disparity 2 must lie between 0 and 1.'
    """
    problem, remedy = getattr(error, "problem", None), getattr(error, "remedy", "")
    if problem is None:  # an error with nothing but its text
        problem = " ".join(part for part in re.split(r"(?<=\.) ", str(error)) if not PYTHON.search(in_options(part)))
        problem = problem or str(error)
    argument = getattr(error, "argument", None)
    if argument in DATA:
        problem = f"{DATA[argument]} {problem}"
    elif argument is not None:
        problem = f"{argument}={getattr(error, 'value', '')} {problem}"
    remedy = REMEDIES.get(type(error).__name__, "" if PYTHON.search(remedy) else remedy)
    return f"{in_options(problem)} {remedy}".strip()


def in_options(text: str) -> str:
    """Return a sentence with options in place of parameters.

    >>> in_options("No model could be certified to max_disparity=0.01.")
    'No model could be certified to --max-disparity 0.01.'
    >>> in_options("sensitive_features: 'sex' has only one group, 'F'.")
    "The sensitive column 'sex' has only one group, 'F'."
    """
    text = re.sub(r"^sensitive_features:? ", f"{DATA['sensitive_features']} ", text)
    text = re.sub(r"^X: (.)", lambda found: found[1].upper(), text)
    return re.sub(rf"(?<!')\b({'|'.join(OPTIONS)})=", lambda found: f"{OPTIONS[found[1]]} ", text)
