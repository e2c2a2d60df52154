"""Adult: the 1994 census extract, with the people who earned more than 50,000 dollars a year."""

import pandas as pd

from fairbits.datasets.dataset import Dataset, shipped_table
from fairbits.datasets.options import check_choice, check_flag

SUBSETS = {"train": ["train"], "test": ["test"], "both": ["train", "test"]}

DESCRIPTION = (
    "One row per person of an extract of the 1994 census data of the United States; UCI Machine Learning "
    "Repository, Adult (Becker and Kohavi 1996, doi 10.24432/C5XW20, CC BY 4.0)."
)
CAVEATS = (
    "The people answered in 1994; jobs, wages and categories have changed since.",
    "The threshold of 50,000 dollars is arbitrary, was reached by few women (10.9 % against 30.6 % of the "
    "men in the training file), and conclusions about fairness change with it (Ding et al. 2021).",
    "fnlwgt is a survey weight, not a property of the person; it is kept because the authors keep it.",
    "education and education-num say the same thing twice.",
    "Capital gains of 99,999, hours of 99 and ages of 90 are caps, not measurements.",
)


def load_adult(*, subset: str = "train", sensitive: str = "sex", drop_missing: bool = False) -> Dataset:
    """Load Adult with S = sex and y = income above 50K.

    The paper's authors code the label the other way round, <=50K as 1: take `1 - y` for theirs (accuracy, AUC and the
    gaps between groups do not change).

    Parameters
    ----------
    subset : {"train", "test", "both"}
        adult.data as the authors (32561 rows), adult.test (16281) or both (48842).
    sensitive : {"sex", "race"}
        The column that becomes `s` and leaves X; the other one stays in X.
    drop_missing : bool
        Drop the rows with a '?' (30162, 15060 and 45222 rows remain) instead of keeping it as a category.

    Examples
    --------
    >>> load_adult()
    Dataset(adult: 32561 rows, 13 columns; >50K 24.1%; sex: Male 21790, Female 10771)
    """
    check_choice("subset", subset, tuple(SUBSETS))
    check_choice("sensitive", sensitive, ("sex", "race"))
    check_flag("drop_missing", drop_missing)
    table = pd.concat([shipped_table(f"adult_{part}.csv.gz") for part in SUBSETS[subset]], ignore_index=True)
    unknown = (table == "?").any(axis=1)
    if drop_missing:
        table = table[~unknown].reset_index(drop=True)
    caveats = [*CAVEATS, f"{int(table.duplicated().sum())} rows repeat another row exactly."]
    if sensitive == "sex":
        caveats.append("relationship (Husband, Wife) still states the sex of almost half of the people.")
    if not drop_missing:
        rows = int(unknown.sum())
        caveats.append(f"Unknown cells are the category '?', which is itself informative: {rows} rows have one.")
    return Dataset(
        name="adult",
        X=table.drop(columns=["income", sensitive]),
        y=(table["income"] == ">50K").astype("int64"),
        s=table[sensitive],
        target_name="income",
        positive_label=">50K",
        description=f"{DESCRIPTION} Rows: subset={subset!r}, drop_missing={drop_missing}.",
        caveats=tuple(caveats),
    )
