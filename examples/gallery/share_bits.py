"""
Share bits instead of columns
=============================

A lender wants to share what it knows about its customers with partners, whose decisions it cannot control. It shares
a code of a few bits: any decision that a partner makes from it keeps a limit. The customers are made up.
"""

import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairbits import CertifiedClassifier, FairCodeClassifier
from fairbits.metrics import discrimination

rng = np.random.default_rng(0)
n = 12_000
sex = pd.Series(rng.choice(["woman", "man"], n), name="sex")
income = rng.normal(np.where(sex == "man", 3.3, 2.9), 0.8)
debt = rng.exponential(1.0, n)
repaid = rng.random(n) < 1 / (1 + np.exp(-(1.5 * income - 1.2 * debt - 3.5)))
X = pd.DataFrame({"income": income, "debt": debt})
old, new = slice(0, 8_000), slice(8_000, None)

# %%
# Fit a code
# ----------
# Two bits per person, and a limit of 15 percentage points on every decision that anyone can make from them.

method = FairCodeClassifier(code_size=2, estimators=LogisticRegression(), random_state=0)
model = CertifiedClassifier(method, max_disparity=0.15, path=(0.03, 0.06, 0.09, 0.12), random_state=0)
model.fit(X[old], repaid[old], sensitive_features=sex[old])
print(model.certificate_)

# %%
# What you may share
# ------------------
# The code of each new customer, and nothing else. The same customer always has the same code.

bits = pd.DataFrame(model.transform(X[new]), columns=model.get_feature_names_out())
bits.head()

# %%
# What the groups get
# -------------------
# A code reveals the sex only as far as women and men get its words at different rates.

words = bits.astype(str).agg("".join, axis=1)
shares = pd.crosstab(words, sex[new].to_numpy(), normalize="columns").rename_axis("word").reset_index()
shares = shares.melt("word", var_name="sex", value_name="share")
chart = alt.Chart(shares).mark_bar().encode(x="word:N", xOffset="sex:N", y="share", color="sex:N")
chart

# %%
# What partners do with it
# ------------------------
# One partner predicts repayment. Another one tries to favour men, and learns from the true sex how to. Both stay
# within the limit, and the same attempt on the raw columns does not.

partners = {
    "predicts repayment from the code": (bits, repaid, LogisticRegression()),
    "favours men, from the code": (bits, sex == "man", DecisionTreeClassifier()),
    "favours men, from the columns": (X[new], sex == "man", DecisionTreeClassifier(max_depth=4)),
}
for name, (columns, aim, rule) in partners.items():
    goal = aim[new]
    decision = rule.fit(columns[:2_000], goal[:2_000]).predict(columns[2_000:])
    disparity = discrimination(decision, sensitive_features=sex[new][2_000:])
    print(f"{name}: a disparity of {disparity:.3f}")
