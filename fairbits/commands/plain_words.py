"""Messages of the library in the words of the command line: columns and options, not Python's parameters."""

import re

REMEDIES = (
    (
        r"sensitive_features: group ('.*') of ('.*') has (\d+) rows, under min_group_size=(\d+); .*",
        r"Group \1 of the sensitive column \2 has \3 rows in the part of the table that trains, and \4 are needed: "
        r"merge it with another, or leave its rows out.",
    ),
    (
        r"X: nothing left to encode, every column was dropped: \{(.*)\}",
        r"Nothing is left to predict from, every column was dropped: \1.",
    ),
    (r"\s*Pass the columns of fit in order: X\[.*?\]\.", ""),
    (r"; drop these rows, merge categories, or fit with groups='each'", "; leave these rows out, or merge groups"),
    (r", for example pandas\.cut\(values, edges\)\.astype\(str\)", ""),
    (r"To choose the groups yourself pass categories", "To choose the groups yourself make a column of them"),
    (r", more than max_values=\d+;", ";"),
    (
        r"Lower gamma, or train longer \(max_epochs, warmup_epochs\)",
        "Ask for less (a larger limit, a smaller --gamma), or train longer (--epochs)",
    ),
    (
        r"compare predict_proba with a threshold of your own, or lower gamma",
        "ask for less (a larger limit, a smaller --gamma), or merge it with another",
    ),
    (r"(about [\d,]+ calibration rows) would be needed", r"\1 (24 % of a table) would be needed"),
    (r"\. Drop it from X, unless the model", ". Leave it out by --drop, unless the model"),
    (
        r"GPA is undefined: fewer than 2 of the (\d+) groups of sensitive_features have positives and negatives in "
        r"y_true; pass more rows or merge groups",
        r"Fewer than 2 of the \1 groups have test rows of several classes: too few to compare them. Merge groups, or "
        r"take a table of more rows.",
    ),
    (r"Raise batch_size or noise_floor, or lower code_size", "Lower --code-size"),
    (r"try another gamma, more epochs or another seed, and compare again", "try another --gamma or more --epochs"),
    (r"; keep some apart \(train_test_split\) and use those", "; use rows that were kept apart"),
    (r"add larger gammas; more rows help", "ask for a larger limit; more rows help"),
    (r"; pass overwrite=True to replace it", "; name another folder"),
    (r"hand on the first, or certify with draws=(\d+)", r"hand on the first, or certify with --draws \1"),
    (r" \(version='corrected' drops them\)", ""),
    (r"drop_duration=True leaves what could be known before calling", "leave it out by --drop duration"),
    (r"\by was not passed\.", "no --label was given."),
    (r"unmitigated is compared by its predictions, which needs labels: pass y", "a label is needed to compare models"),
    (r"it draws with a fixed seed \(random_state\), void", "it draws with a fixed seed, void"),
)
NAMES = (
    (r"sensitive_features: ('[^']*')", r"the sensitive column \1"),
    (r"sensitive_features holds only", "the sensitive column holds only"),
    (r"\bX: column\b", "Column"),
    (r"\bcolumn ('[^']*') of X\b", r"column \1"),
    (r"(?<!')\bsensitive_features\b", "the sensitive columns"),  # quoted is a column of that name
    (r"\bmax_disparity=", "--max-disparity "),
    (r"\bmax_information=", "--max-information "),
    (r"(?<!')\bcode_size\b", "--code-size"),
    (r"(?<!')\bmax_epochs\b", "--epochs"),
    (r"(?<!')\bn_bins\b", "--bins"),
    (r"\bconfidence=", "--confidence "),
    (r"\b(encoding|separator)='([^']*)'", r"--\1 \2"),
    (r"\bseparator=\.\.\.", "--separator"),
)


def plain_words(message: str) -> str:
    """Return a message without the names of Python's parameters.

    >>> plain_words("sensitive_features: 'sex' has only one group, 'F'; pass rows of two or more groups")
    "The sensitive column 'sex' has only one group, 'F'; pass rows of two or more groups"
    """
    for pattern, words in (*REMEDIES, *NAMES):
        message = re.sub(pattern, words, message)
    return message[:1].upper() + message[1:] if message.startswith("the sensitive") else message
