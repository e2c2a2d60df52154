"""COMPAS: defendants of Broward County, Florida, and who was arrested again within two years."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fairbits.datasets.dataset import Dataset
from fairbits.datasets.options import check_choice
from fairbits.datasets.shipped import shipped_table
from fairbits.errors import InputError

VERSIONS = ("authors", "propublica", "corrected")
FEATURES = {
    "authors": ["priors_count", "sex", "age_cat", "c_charge_degree"],
    "all": [
        "priors_count",
        "sex",
        "age",
        "age_cat",
        "c_charge_degree",
        "juv_fel_count",
        "juv_misd_count",
        "juv_other_count",
        "decile_score",
    ],
}
RACES = ("African-American", "Caucasian")

DESCRIPTION = (
    "One row per defendant scored by the COMPAS tool in Broward County, Florida, in 2013 and 2014; collected "
    "by ProPublica in 2016 (compas-scores-two-years.csv). Names, dates and case numbers were left out."
)

CAVEATS = (
    "The label is a new arrest within two years, not a new offence: it depends on whom the police arrests as "
    "well as on what people do, so it may carry the very bias that one wants to remove.",
    "Race was recorded by the authorities, not stated by the person.",
    "The rows are one county in two years; nothing here speaks for another place or time.",
    "The table can rank methods; it must not be used to decide about people.",
)

UNCORRECTED = (
    "Of the people screened after 1 April 2014, too late to be observed for two years, ProPublica kept those "
    "arrested again and only those, which inflates the positive rate (the corrected version drops them)."
)


def load_compas(*, version: str = "authors", races: Sequence[str] | None = RACES, features: str = "authors") -> Dataset:
    """Load COMPAS with S = race and y = arrested again within two years.

    Parameters
    ----------
    version : {"authors", "propublica", "corrected"}
        Which rows: all, as the paper's authors do (6150 of the two races); those that pass ProPublica's own
        filter (5278); or those of them that were observed for two years (4511).
    races : sequence of str, or None
        Which groups; None takes all six (7214 rows without a filter), some of them tiny.
    features : {"authors", "all"}
        The authors' four columns (8 numbers once one-hot encoded), or also age in years, juvenile counts and
        the tool's own decile score.

    Examples
    --------
    >>> load_compas()
    Dataset(compas: 6150 rows, 4 columns; arrested again 46.6%; race: African-American 3696, Caucasian 2454)
    """
    check_choice("version", version, VERSIONS)
    check_choice("features", features, tuple(FEATURES))
    table = _of_races(_of_version(shipped_table("compas.csv.gz"), version), races).reset_index(drop=True)
    X = table[FEATURES[features]].copy()
    return Dataset(
        name="compas",
        X=X,
        y=table["two_year_recid"],
        s=table["race"],
        target_name="two_year_recid",
        positive_label="arrested again",
        description=f"{DESCRIPTION} Rows: version={version!r}.",
        caveats=_caveats(X, version),
    )


def _of_version(table: pd.DataFrame, version: str) -> pd.DataFrame:
    if version == "authors":
        return table
    # An arrest more than 30 days from the screening is probably not the one that was scored.
    passes = (
        table["days_b_screening_arrest"].between(-30, 30)
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & table["score_text"].isin(["Low", "Medium", "High"])
    )
    if version == "corrected":
        passes &= table["full_follow_up"] == 1
    return table[passes]


def _of_races(table: pd.DataFrame, races: Sequence[str] | None) -> pd.DataFrame:
    if races is None:
        return table
    known = sorted(table["race"].unique())
    wanted = [races] if isinstance(races, str) else list(races)
    if len(set(wanted)) < 2 or not set(wanted) <= set(known):
        raise InputError(f"races={races!r} is not possible: pass two or more of {known}, or None for all")
    return table[table["race"].isin(wanted)]


def _caveats(X: pd.DataFrame, version: str) -> tuple[str, ...]:
    few = (
        f"The {len(X)} rows hold {len(X.drop_duplicates())} distinct combinations of features: rows that "
        "look the same are in training and test data alike, with different labels."
    )
    return (*CAVEATS, few) if version == "corrected" else (*CAVEATS, few, UNCORRECTED)
