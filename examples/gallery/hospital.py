"""
Count patients, not visits
==========================

A hospital flags visits for follow-up, and wants to prove that it flags women and men at similar rates. Some patients
come many times. Their visits resemble each other, so a thousand visits of a hundred people prove what a hundred
people prove. We made up the hospital, so we know the truth.
"""

import altair as alt
import numpy as np
import pandas as pd

from fairbits import certify

TRUTH = 0.1  # women are flagged 10 percentage points more often


def visits(seed: int, patients: int = 600) -> pd.DataFrame:
    """Make up the visits of some patients: most come once or twice, a few come dozens of times."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["woman", "man"], patients)
    needs_care = rng.random(patients) < np.where(sex == "woman", 0.5, 0.5 - TRUTH)
    count = np.minimum(rng.geometric(0.5, patients) * rng.choice([1, 12], patients, p=[0.9, 0.1]), 60)
    person = np.repeat(np.arange(patients), count)
    return pd.DataFrame({"person": person, "sex": sex[person], "flagged": needs_care[person]})


# %%
# The table
# ---------

table = visits(seed=0)
print(f"{len(table):,} visits of {table['person'].nunique():,} patients")
table.head()

# %%
# Two certificates
# ----------------
# The first takes each visit for another person, which is wrong here. The second is given the patient of each visit,
# and counts the mean of a patient's visits once.

wrong = certify(table["flagged"].to_numpy(), sensitive_features=table["sex"])
right = certify(table["flagged"].to_numpy(), sensitive_features=table["sex"], person=table["person"])
print(f"visits as people: a disparity of at most {wrong.total_variation:.3f}")
print(f"person=: a disparity of at most {right.total_variation:.3f}; the truth is {TRUTH}")

# %%
# Fifty hospitals
# ---------------
# A bound at 95 % confidence may be below the truth one time in twenty. We make fifty hospitals and count.

found = []
for seed in range(50):
    new = visits(seed)
    for name, person in (("visits as people", None), ("person=", new["person"])):
        bound = certify(new["flagged"].to_numpy(), sensitive_features=new["sex"], person=person).total_variation
        found.append({"rows": name, "bound": bound, "wrong": bound < TRUTH})
found = pd.DataFrame(found)
found.groupby("rows")["wrong"].agg(["sum", "count"]).rename(columns={"sum": "wrong bounds", "count": "hospitals"})

# %%
# Bounds left of the line are wrong.

marks = (
    alt.Chart(found)
    .mark_tick()
    .encode(
        x=alt.X("bound", title="proved disparity"),
        y=alt.Y("rows", title=None),
        color=alt.Color("wrong", title="below the truth"),
    )
)
chart = marks + alt.Chart(pd.DataFrame({"truth": [TRUTH]})).mark_rule().encode(x="truth")
chart

# %%
# The command line takes ``--person COLUMN``, and asks about a column that looks as if it named people with several
# rows.
