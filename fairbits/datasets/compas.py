"""COMPAS: defendants of Broward County, Florida, and whether they were arrested again within two years."""

from collections.abc import Sequence

from fairbits.datasets.dataset import Dataset, shipped_table
from fairbits.datasets.options import check_choice
from fairbits.errors import InputError

VERSIONS = ("authors", "propublica", "corrected")
AUTHORS_FEATURES = ["priors_count", "sex", "age_cat", "c_charge_degree"]
JUVENILE = ["juv_fel_count", "juv_misd_count", "juv_other_count"]
FEATURES = {
    "authors": AUTHORS_FEATURES,
    "all": ["priors_count", "sex", "age", "age_cat", "c_charge_degree", *JUVENILE, "decile_score"],
}
RACES = ("African-American", "Caucasian")

DESCRIPTION = (
    "One row per defendant scored by the COMPAS tool in Broward County, Florida, in 2013 and 2014; collected "
    "by ProPublica in 2016 (compas-scores-two-years.csv). Names, dates and case numbers were left out."
)
CAVEATS = (
    "The label is a new arrest within two years, not a new offence: it depends on whom the police arrests as "
    "well as on what people do, so it may carry the very bias that you want to remove.",
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
        Which rows: all, as the paper's authors do (6150 of the two races); those that pass ProPublica's own filter
        (5278); or those of them that were observed for two years (4511).
    races : sequence of str, or None
        Which groups; None takes all six (7214 rows without a filter), some of them tiny.
    features : {"authors", "all"}
        The authors' four columns (8 numbers once one-hot encoded), or also age in years, juvenile counts and the
        tool's own decile score.

    Examples
    --------
    >>> load_compas()
    Dataset(compas: 6150 rows, 4 columns; arrested again 46.6%; race: African-American 3696, Caucasian 2454)
    """
    check_choice("version", version, VERSIONS)
    check_choice("features", features, tuple(FEATURES))
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
    X = table[FEATURES[features]].copy()
    few = (
        f"The {len(X)} rows hold {len(X.drop_duplicates())} distinct combinations of features: rows that "
        "look the same are in training and test data alike, with different labels."
    )
    return Dataset(
        name="compas",
        X=X,
        y=table["two_year_recid"],
        s=table["race"],
        target_name="two_year_recid",
        positive_label="arrested again",
        description=f"{DESCRIPTION} Rows: version={version!r}.",
        caveats=(*CAVEATS, few) if version == "corrected" else (*CAVEATS, few, UNCORRECTED),
    )
