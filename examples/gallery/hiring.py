"""
Hire with two sensitive columns
===============================

Rates that are equal for both sexes and for all ages can hide a difference between, say, young women and young men. We
look at each column, then at their combinations, and fit decisions that keep a limit for all of them. The applicants
are made up.
"""

import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairbits import CertifiedClassifier, FairCodeClassifier, certify
from fairbits.certificate import group_rates


def applicants(n: int, seed: int) -> pd.DataFrame:
    """Make up applicants: an interview favours young men and older women, by as much as it disfavours the others."""
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["woman", "man"], n), rng.choice(["under 40", "40 or older"], n)
    skill = rng.normal(0, 1, n)
    favoured = (sex == "man") == (age == "under 40")
    interview = skill + rng.normal(np.where(favoured, 0.4, -0.4), 0.5)
    test = skill + rng.normal(0, 0.7, n)
    hired = skill + np.where(favoured, 0.25, -0.25) + rng.normal(0, 0.5, n) > 0
    return pd.DataFrame({"interview": interview, "test": test, "sex": sex, "age": age, "hired": hired})


table, later = applicants(8_000, seed=0), applicants(4_000, seed=1)
COLUMNS, SENSITIVE = ["interview", "test"], ["sex", "age"]

# %%
# Each column looks fine
# ----------------------
# A model of past decisions selects both sexes, and both ages, at about the same rate.

plain = LogisticRegression().fit(table[COLUMNS], table["hired"]).predict(later[COLUMNS])
before = group_rates(plain, sensitive_features=later[SENSITIVE])
before[["column", "group", "rows", "selected"]].round(3)

# %%
# Their combinations do not
# -------------------------
# The last rows of the table show it. By default, several columns are certified in all their combinations.

for names in ("sex", "age", SENSITIVE):
    proved = certify(plain, sensitive_features=later[names]).total_variation
    print(f"{names}: a disparity of at most {proved:.3f}")

# %%
# A limit for all of them
# -----------------------
# The limit holds for each pair of the four groups, and so for each column, too. Four groups have fewer rows each than
# two, so they prove less: ``fairbits plan`` says how much before you train.

method = FairCodeClassifier(estimators=LogisticRegression(), random_state=0)
model = CertifiedClassifier(method, promise="class", max_disparity=0.15, random_state=0)
model.fit(table[COLUMNS], table["hired"], sensitive_features=table[SENSITIVE])
decisions = model.predict(later[COLUMNS])
for name, made in (("with the limit", decisions), ("without protection", plain)):
    print(f"{name}: accuracy {np.mean(made == later['hired']):.3f}")

# %%
# Before and after
# ----------------

after = group_rates(decisions, sensitive_features=later[SENSITIVE])
frame = pd.concat([before.assign(model="without protection"), after.assign(model="certified, 0.15")])
frame = frame[frame["column"] == frame["column"].iloc[-1]]
chart = (
    alt.Chart(frame)
    .mark_bar()
    .encode(
        x=alt.X("selected", title="share that is hired"), y=alt.Y("group", title=None), row=alt.Row("model", title=None)
    )
)
chart
