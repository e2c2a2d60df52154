"""Records of `fairbits fit` for tests: a small fit of a table whose names try to break the page."""

import json

import numpy as np
import pandas as pd

from fairbits.auditing import audit
from fairbits.report.page import FORMAT
from fairbits.tables.task import make_task
from fairbits.workflow import fit_task as fitting
from fairbits.workflow.fit_records import fit_record

EVIL = "</script><img src=x onerror=alert(1)>"
GROUP = "<b onclick='alert(2)'>&amp;\"F"


def small_table(n=600, seed=0):
    """Return a table with a label, two sensitive columns, one of them with names that are HTML, and three more."""
    rng = np.random.default_rng(seed)
    sex, grade = rng.choice([GROUP, "M"], n), rng.normal(size=n)
    return pd.DataFrame(
        {
            "grade": grade,
            "height": rng.normal(size=n) + (sex == "M"),
            "<i>job</i>": rng.choice(["a", "b"], n),
            EVIL: sex,
            "age": rng.integers(18, 80, n),
            "paid": np.where(grade + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def small_record(**options):
    """Return the record of a fit of a few epochs, as it is read from a file."""
    task = make_task(small_table(), "paid", [EVIL, "age"], n_bins=2, crossed=True)
    asked = fitting.FitOptions(**(options or {"max_disparity": 0.9}), code_size=3, max_epochs=2)
    fit = fitting.fit_task(task, asked, path=(0.05, 0.3, 0.9))
    record = fit_record(fit, task, f"{EVIL}.csv")
    return json.loads(json.dumps(record, allow_nan=False))


def audit_record(values, groups):
    """Return the record of an audit of somebody else's representation."""
    found = audit(values, sensitive_features=groups)
    return {"format": FORMAT, "source": "theirs.csv", "audit": json.loads(json.dumps(found.to_dict()))}
