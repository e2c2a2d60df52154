"""Bank marketing: the people whom a Portuguese bank's telephone campaign persuaded to make a term deposit."""

from numbers import Integral
from pathlib import Path

import pandas as pd

from fairbits.datasets.dataset import Dataset, Folder, parse_table, shipped_table, verify
from fairbits.datasets.options import check_choice, check_flag
from fairbits.errors import InputError

ADDITIONAL = "bank-additional-full.csv"
ADDITIONAL_SHA256 = "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8"
SOURCE = "UCI Machine Learning Repository, Bank Marketing (doi 10.24432/C5K306, CC BY 4.0)"

DESCRIPTION = (
    f"One row per telephone call about a term deposit, a Portuguese bank, 2008 to 2010; {SOURCE}. S is made from "
    "the age, which is not in X."
)
CAVEATS = (
    "The two groups are very unequal: {outside} of {rows} rows are outside the ages {low} to {high}.",
    "The outer group joins the very young and the old, who share little: one gap can hide two opposite ones.",
    "job (student, retired) still says much about the age group, although age is not in X.",
    "'unknown' is kept as a category; pdays = {never} means never contacted before, not a number of days.",
    "The rows are in order of time, across the financial crisis: a random split shows a model the future.",
)
LEAK = (
    "duration, the length of the call, is known only when the outcome is: alone it ranks yes before no with "
    "AUC {auc}. The authors keep it; without it, a model uses only what is known before the call."
)
VERSIONS = {"full": {"never": "-1", "auc": "0.81"}, "additional": {"never": "999", "auc": "0.82"}}


def load_bank(
    *, version: str = "full", ages: tuple[int, int] = (25, 65), drop_duration: bool = False, data_home: Folder = None
) -> Dataset:
    """Load Bank marketing with S = an age inside or outside a range and y = made a deposit.

    Parameters
    ----------
    version : {"full", "additional"}
        bank-full.csv, which is shipped (45211 rows), or bank-additional-full.csv, the authors' file (41188 rows, 62
        numbers once encoded), which you bring along in `data_home`.
    ages : (int, int)
        First and last age of the inner group, both included. (25, 65) is the paper's text, where people under 25 and
        over 65 are the other group. The authors' code has 25 < age < 60, that is (26, 59).
    drop_duration : bool
        Leave out the length of the call, which gives the outcome away. The authors keep it.
    data_home : path, optional
        Folder with bank-additional-full.csv; not used by version="full".

    Examples
    --------
    >>> load_bank()
    Dataset(bank: 45211 rows, 15 columns; yes 11.7%; age: 25 to 65 43651, under 25 or over 65 1560)
    """
    check_choice("version", version, tuple(VERSIONS))
    check_flag("drop_duration", drop_duration)
    pair = tuple(ages) if isinstance(ages, tuple | list) else ()
    whole = all(isinstance(age, Integral) and not isinstance(age, bool) for age in pair)
    if len(pair) != 2 or not whole or pair[0] > pair[1]:
        remedy = "Pass the first and the last age of the inner group as whole numbers, e.g. (25, 65)."
        raise InputError("is not possible.", argument="ages", value=ages, remedy=remedy)
    low, high = int(pair[0]), int(pair[1])
    table = shipped_table("bank_full.csv.gz") if version == "full" else _additional_table(data_home)
    age = table["age"]
    inside = age.between(low, high)
    if inside.nunique() < 2:
        remedy = f"Pass a part of the ages in the table, {age.min()} to {age.max()}."
        raise InputError("leaves a group empty.", argument="ages", value=(low, high), remedy=remedy)
    facts = {"outside": int((~inside).sum()), "rows": len(table), "low": low, "high": high, **VERSIONS[version]}
    caveats = CAVEATS if drop_duration else (*CAVEATS, LEAK)
    return Dataset(
        name="bank",
        X=table.drop(columns=["y", "age", "duration"] if drop_duration else ["y", "age"]),
        y=(table["y"] == "yes").astype("int64"),
        s=inside.map({True: f"{low} to {high}", False: f"under {low} or over {high}"}),
        target_name="y",
        positive_label="yes",
        description=f"{DESCRIPTION} Rows: version={version!r}.",
        caveats=tuple(caveat.format(**facts) for caveat in caveats),
    )


def _additional_table(data_home: Folder) -> pd.DataFrame:
    remedy = f"Take {ADDITIONAL} unchanged out of bank-additional.zip of the {SOURCE}"
    if data_home is None:
        problem = "is not possible with version='additional', which is not shipped."
        raise InputError(problem, argument="data_home", value=None, remedy=f"{remedy}, and pass its folder.")
    folder = Path(data_home).expanduser()
    path = next((p for p in (folder / ADDITIONAL, folder / "bank-additional" / ADDITIONAL) if p.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"The folder {str(data_home)!r} holds no {ADDITIONAL}. {remedy}, and put it there.")
    content = path.read_bytes()
    verify(str(path), content, ADDITIONAL_SHA256, f"{remedy}.")
    return parse_table(content, separator=";")
