"""
Audit decisions that somebody made
==================================

You need no model for an audit: a column of decisions and a column of groups will do. Here a rule of thumb flags
everybody with more than two earlier arrests, in the COMPAS table. (The table has known faults: see :doc:`/datasets`.
It shows how an audit works, and says nothing about people.)
"""

import altair as alt

from fairbits import certify
from fairbits.certificate import group_rates, selection_ratio
from fairbits.datasets import load_compas

data = load_compas()
flagged = data.X["priors_count"] > 2
race = data.s

# %%
# Rates with intervals
# --------------------
# How often is each group flagged, among all, among those who were arrested again (true positives), and among those
# who were not (false positives)? The intervals are exact, at 95 % confidence each.

rates = group_rates(flagged, sensitive_features=race, y=data.y == 1)
rates[["group", "rows", "base", "selected", "true_positive", "false_positive", "accuracy", "ratio"]].round(3)

# %%
# The same as a picture.

kinds = {"selected": "flagged", "true_positive": "flagged, if arrested again", "false_positive": "flagged, if not"}
intervals = [
    {"rate": title, "group": row.group, "value": row[kind], "low": row[f"{kind}_low"], "high": row[f"{kind}_high"]}
    for kind, title in kinds.items()
    for _, row in rates.iterrows()
]
base = alt.Chart(alt.Data(values=intervals)).encode(y=alt.Y("group:N", title=None), color="group:N")
lines = base.mark_rule(size=3).encode(x=alt.X("low:Q", title="rate, with its 95 % interval"), x2="high:Q")
dots = base.mark_point(filled=True, size=60).encode(x="value:Q")
chart = (lines + dots).properties(height=50).facet(row=alt.Row("rate:N", title=None))
chart

# %%
# What the rows prove
# -------------------
# The disparity on these rows is one thing, that of the population another. The certificate bounds the second, among
# all and, because we pass labels, among people with the same label (equalised odds).

print(certify(flagged.to_numpy(), sensitive_features=race, y=data.y))

# %%
# The ratio of rates
# ------------------
# Rules such as the four-fifths rule compare ratios of rates, of a decision that people wish for: here, not to be
# flagged.

shown, proved = selection_ratio(~flagged, sensitive_features=race)
print(f"The smallest ratio of two groups is {shown:.3f} on these rows, and at least {proved:.3f} in the population.")

# %%
# The command line does the same with a table: ``fairbits certify decisions.csv --decision flagged --sensitive race``.
