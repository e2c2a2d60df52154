"""How often a verdict is called borderline: ``python -m benchmarks.borderline [NAME ...]`` (seconds for each fit).

The fits are those of `benchmarks.unseen` without its references, audit and report. Each has one line in
results/borderline/records.jsonl and is not run again.
"""

from collections import Counter
from typing import Any

import numpy as np

from benchmarks.outcomes import RESULTS, Job, run_and_publish, table_lines
from benchmarks.unseen import TABLES
from benchmarks.unseen import jobs as every_fit
from fairbits.certificate.released_code import fitted_code
from fairbits.encoding.recognition import one_row_each
from fairbits.tables.task import make_task
from fairbits.workflow.comparisons import USELESS, chance, verdict_changes
from fairbits.workflow.fit_task import UNSURE, FitOptions, _fit_limits

FOLDER = RESULTS / "borderline"
BOUND = "class_total_variation"
HEAD = f"""\
# Borderline verdicts

`python -m benchmarks.borderline`. The fits of [results/unseen](../unseen/table.md): seeds shuffle the rows, which
splits them again. A verdict is borderline if the chance that another split ends in another verdict is predicted above
{UNSURE:g}. "Predicted" is its mean; "found" is how often two splits of the table end differently. "Settled": the
verdict is the most frequent one of the table, or called borderline."""


def jobs(names: list[str]) -> list[Job]:
    """List the fits, all tables of a seed together."""
    return sorted(every_fit(names), key=lambda job: job.seed)


def run(job: Job) -> dict[str, Any]:
    """Fit as a user would, and estimate the chances of the verdicts."""
    load, label, sensitive, person, _ = TABLES[job.table]
    table = load().sample(frac=1, random_state=job.seed).reset_index(drop=True)
    if job.table.startswith("Adult"):
        table = table[: int(job.table.split()[1].replace(",", ""))]
    task, asked = (
        make_task(table, label, sensitive, person=person),
        FitOptions(max_disparity=job.limit, promise="class"),
    )
    train, held, test = task.parts
    fit = _fit_limits(task, asked.pipeline(task.groups), train, held, asked, None, 0)
    X, y, s = task.part(test[one_row_each(task.people(test), len(test))])
    method, rows = fitted_code(fit.model, X, s)
    values, counts = np.unique(task.y[train], return_counts=True)
    constant = values[counts.argmax()]
    p_values = np.array([chance(y, one[-1], rows, constant, True) for one in fit.path])
    bounds, shown = (np.array([[row[how + BOUND]] for row in fit.tested], dtype=float) for how in ("", "shown_"))
    shares = verdict_changes(bounds, shown, [job.limit], asked.confidence, p_values)
    useful = p_values[[one[-1] is method for one in fit.path]][0] <= USELESS
    verdict = "not certified" if fit.refusal else "certified" if useful else "certified but not useful"
    return {"verdict": verdict, "other": 1 - shares[verdict]}


def tables(found: list[dict[str, Any]]) -> list[str]:
    """Return the page."""
    rows = []
    for name, limit in dict.fromkeys((one["table"], one["limit"]) for one in found):
        own = [one for one in found if (one["table"], one["limit"]) == (name, limit)]
        verdicts = Counter(one["result"]["verdict"] for one in own)
        now = [one["result"]["other"] > UNSURE for one in own]
        usual = verdicts.most_common(1)[0][0]
        settled = sum(one["result"]["verdict"] == usual or near for one, near in zip(own, now, strict=True))
        said = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())
        n = len(own)
        predicted = np.mean([one["result"]["other"] for one in own])
        differ = 1 - sum(k * (k - 1) for k in verdicts.values()) / max(n * (n - 1), 1)
        shares = [f"{predicted:.2f}", f"{differ:.2f}"]
        rows.append([name, f"{limit:g}", said, f"{sum(now)} of {n}", *shares, f"{settled} of {n}"])
    head = ["table", "limit", "verdicts", "borderline", "predicted", "found", "settled"]
    return [HEAD, "", *table_lines(head, rows)]


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, run, FOLDER, tables)
