"""The tables that come with fairbits: Adult, Bank marketing and COMPAS, as published and checked by sha256."""

import gzip
import io
import json
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

import pandas as pd

from fairbits.datasets.dataset import SHIPPED, Dataset, Folder, about, verify
from fairbits.errors import InputError
from fairbits.settings import check_value

SUBSETS = {"train": ["train"], "test": ["test"], "both": ["train", "test"]}
BANK_VERSIONS = {"full": {"never": "-1", "auc": "0.81"}, "additional": {"never": "999", "auc": "0.82"}}
ADDITIONAL = "bank-additional-full.csv"
ADDITIONAL_SHA256 = "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8"
RACES = ("African-American", "Caucasian")
JUVENILE = ["juv_fel_count", "juv_misd_count", "juv_other_count"]
FEATURES = {
    "authors": ["priors_count", "sex", "age_cat", "c_charge_degree"],
    "all": ["priors_count", "sex", "age", "age_cat", "c_charge_degree", *JUVENILE, "decile_score"],
}


def load_adult(*, subset: str = "train", sensitive: str = "sex", drop_missing: bool = False) -> Dataset:
    """Load Adult with S = sex and y = income above 50K.

    The paper's authors code the label the other way round, <=50K as 1: take `1 - y` for theirs (accuracy, AUC and the
    differences between groups do not change).

    Parameters
    ----------
    subset : "train", adult.data as the authors (32561 rows); "test", adult.test (16281); or "both" (48842)
    sensitive : "sex" or "race", the column that becomes `s` and leaves X; the other one stays in X
    drop_missing : drop the rows with a '?' (30162, 15060 and 45222 remain) instead of keeping it as a category

    Examples
    --------
    >>> load_adult()
    Dataset(adult: 32561 rows, 13 columns; >50K 24.1%; sex: Male 21790, Female 10771)
    """
    check_value("subset", subset, one_of=SUBSETS)
    check_value("sensitive", sensitive, one_of=("sex", "race"))
    check_value("drop_missing", drop_missing, one_of=(True, False))
    table = pd.concat([shipped_table(f"adult_{part}.csv.gz") for part in SUBSETS[subset]], ignore_index=True)
    unknown = (table == "?").any(axis=1)
    if drop_missing:
        table = table[~unknown].reset_index(drop=True)
    cases = [case for case, holds in (("sex", sensitive == "sex"), ("unknown", not drop_missing)) if holds]
    facts = {"subset": subset, "drop_missing": drop_missing}
    text = about("adult", *cases, **facts, repeated=table.duplicated().sum(), unknown=unknown.sum())
    X, y = table.drop(columns=["income", sensitive]), (table["income"] == ">50K").astype("int64")
    return Dataset("adult", X, y, table[sensitive], "income", ">50K", *text)


def load_bank(
    *, version: str = "full", ages: tuple[int, int] = (25, 65), drop_duration: bool = False, data_home: Folder = None
) -> Dataset:
    """Load Bank marketing with S = an age inside or outside a range and y = made a deposit.

    Parameters
    ----------
    version : "full", bank-full.csv, which is shipped (45211 rows); or "additional", bank-additional-full.csv, the
        authors' file (41188 rows, 62 numbers once encoded), which you bring along in `data_home`
    ages : first and last age of the inner group, both included. (25, 65) is the paper's text, where people under 25
        and over 65 are the other group. The authors' code has 25 < age < 60, that is (26, 59)
    drop_duration : leave out the length of the call, which gives the outcome away; the authors keep it
    data_home : folder with bank-additional-full.csv; not used by version="full"

    Examples
    --------
    >>> load_bank()
    Dataset(bank: 45211 rows, 15 columns; yes 11.7%; age: 25 to 65 43651, under 25 or over 65 1560)
    """
    check_value("version", version, one_of=BANK_VERSIONS)
    check_value("drop_duration", drop_duration, one_of=(True, False))
    pair = tuple(ages) if isinstance(ages, tuple | list) else ()
    whole = all(isinstance(age, Integral) and not isinstance(age, bool) for age in pair)
    if len(pair) != 2 or not whole or pair[0] > pair[1]:
        remedy = "Pass the first and the last age of the inner group as whole numbers, e.g. (25, 65)."
        raise InputError("is not possible.", argument="ages", value=ages, remedy=remedy)
    low, high = map(int, pair)
    table = shipped_table("bank_full.csv.gz") if version == "full" else _additional_table(data_home)
    inside = table["age"].between(low, high)
    if inside.nunique() < 2:
        remedy = f"Pass a part of the ages in the table, {table['age'].min()} to {table['age'].max()}."
        raise InputError("leaves a group empty.", argument="ages", value=(low, high), remedy=remedy)
    facts = {"version": version, "rows": len(table), "low": low, "high": high, **BANK_VERSIONS[version]}
    text = about("bank", *([] if drop_duration else ["duration"]), **facts, outside=(~inside).sum())
    dropped = ["y", "age", "duration"] if drop_duration else ["y", "age"]
    X, y = table.drop(columns=dropped), (table["y"] == "yes").astype("int64")
    s = inside.map({True: f"{low} to {high}", False: f"under {low} or over {high}"})
    return Dataset("bank", X, y, s, "y", "yes", *text)


def load_compas(*, version: str = "authors", races: Sequence[str] | None = RACES, features: str = "authors") -> Dataset:
    """Load COMPAS with S = race and y = arrested again within two years.

    Parameters
    ----------
    version : "authors", all rows, as the paper's authors take them (6150 of the two races); "propublica", those that
        pass ProPublica's own filter (5278); or "corrected", those of them that were observed for two years (4511)
    races : which groups; None takes all six (7214 rows without a filter), some of them tiny
    features : "authors", their four columns (8 numbers once one-hot encoded); or "all", which adds age in years,
        juvenile counts and the tool's own decile score

    Examples
    --------
    >>> load_compas()
    Dataset(compas: 6150 rows, 4 columns; arrested again 46.6%; race: African-American 3696, Caucasian 2454)
    """
    check_value("version", version, one_of=("authors", "propublica", "corrected"))
    check_value("features", features, one_of=FEATURES)
    table = shipped_table("compas.csv.gz")
    known = sorted(table["race"].unique())
    wanted = known if races is None else [races] if isinstance(races, str) else list(races)
    if len(set(wanted)) < 2 or not set(wanted) <= set(known):
        remedy = f"Pass two or more of {known}, or None for all."
        raise InputError("is not possible.", argument="races", value=races, remedy=remedy)
    kept = table["race"].isin(wanted)
    if version != "authors":  # an arrest more than 30 days from the screening is probably not the one that was scored
        kept &= table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
        kept &= (table["c_charge_degree"] != "O") & table["score_text"].isin(["Low", "Medium", "High"])
    if version == "corrected":
        kept &= table["full_follow_up"] == 1
    table = table[kept].reset_index(drop=True)
    X, y = table[FEATURES[features]].copy(), table["two_year_recid"]
    cases = [] if version == "corrected" else ["uncorrected"]
    text = about("compas", *cases, version=version, rows=len(X), distinct=len(X.drop_duplicates()))
    return Dataset("compas", X, y, table["race"], "two_year_recid", "arrested again", *text)


def shipped_table(name: str) -> pd.DataFrame:
    """Read one of the shipped tables after checking its sha256."""
    content = (SHIPPED / name).read_bytes()
    expected = json.loads((SHIPPED / "checksums.json").read_text(encoding="utf-8"))[name]
    verify(name, content, expected, "Install fairbits again.")
    return parse_table(gzip.decompress(content))


def parse_table(content: bytes, separator: str = ",") -> pd.DataFrame:
    """Parse a table in which only an empty cell is missing ('?' and 'unknown' stay as they are)."""
    return pd.read_csv(io.BytesIO(content), sep=separator, keep_default_na=False, na_values=[""])


def _additional_table(data_home: Folder) -> pd.DataFrame:
    source = "UCI Machine Learning Repository, Bank Marketing (doi 10.24432/C5K306, CC BY 4.0)"
    remedy = f"Take {ADDITIONAL} unchanged out of bank-additional.zip of the {source}"
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
