"""
Decide on loans within a certified limit
========================================

A bank predicts who repays a loan. It does not use the sex of its customers, and still pays out to men more often. We
fit decisions whose rates differ by at most 10 percentage points, and prove it. The customers are made up.
"""

import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairbits import CertifiedClassifier, FairCodeClassifier, certify
from fairbits.certificate import group_rates


def customers(n: int, seed: int) -> pd.DataFrame:
    """Make up customers: men more often have the jobs that pay well, and those who earn more repay more often."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["woman", "man"], n)
    income = rng.normal(np.where(sex == "man", 3.3, 2.9), 0.8)
    debt, years = rng.exponential(1.0, n), rng.uniform(0, 20, n)
    chance = 1 / (1 + np.exp(-(1.5 * income - 1.2 * debt + 0.05 * years - 4)))
    return pd.DataFrame({"income": income, "debt": debt, "years": years, "sex": sex, "repaid": rng.random(n) < chance})


COLUMNS = ["income", "debt", "years"]
table, later = customers(8_000, seed=0), customers(4_000, seed=1)

# %%
# Without protection
# ------------------
# A plain model never sees the sex. The income shows it.

plain = LogisticRegression().fit(table[COLUMNS], table["repaid"])
print(f"accuracy {plain.score(later[COLUMNS], later['repaid']):.3f}")
group_rates(plain.predict(later[COLUMNS]), sensitive_features=later["sex"])[["group", "rows", "selected"]].round(3)

# %%
# With a limit
# ------------
# `CertifiedClassifier` keeps some rows apart, the calibration rows. It fits a series of models, from strong
# protection to weak. Of those that the calibration rows prove to be within the limit it keeps the least protected one,
# unless another one is clearly more accurate.
# (`CertifiedClassifier(promise="class")` alone also takes text columns and boosted trees; this is the fast version.)

method = FairCodeClassifier(estimators=LogisticRegression(), random_state=0)
model = CertifiedClassifier(method, promise="class", max_disparity=0.1, random_state=0)
model.fit(table[COLUMNS], table["repaid"], sensitive_features=table["sex"])
print(model.certificate_)

# %%
# What the limit costs
# --------------------
# Each point is a model of the series. Those left of the line are proved to keep the limit.

points = alt.Chart(model.path_).mark_point(filled=True, size=70)
points = points.encode(
    x=alt.X("class_total_variation", title="disparity that the calibration rows prove"),
    y=alt.Y("accuracy", title="accuracy", scale=alt.Scale(zero=False)),
    color=alt.Color("passed", title="passed"),
)
series = points + alt.Chart(pd.DataFrame({"limit": [0.1]})).mark_rule(strokeDash=[4, 4]).encode(x="limit")
series

# %%
# Later customers
# ---------------
# The certificate is about the population. Does it hold for people who come later? These rows say so on their own.

print(f"accuracy {np.mean(model.predict(later[COLUMNS]) == later['repaid']):.3f}")
print(certify(model, later[COLUMNS], sensitive_features=later["sex"]))
