"""Our codes on other tasks, and on small tables: ``python -m benchmarks.tasks [tasks] [small] [--workers N]``.

Every job has one line in results/tasks/records.jsonl and is not run again.
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits import CertifiedClassifier, FairCodeClassifier, TableEncoder, certify
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.estimators.promises import NotCertifiedError

FOLDER = RESULTS / "tasks"
LIMITS = (0.02, 0.05, 0.1, 1.0)
SPLITS = 3
LOADERS = {"adult": load_adult, "bank": load_bank, "compas": load_compas}
SMALL, SAMPLES, PROMISES = 1_000, 8, (0.25, 0.35)
MARRIED = {"Married-civ-spouse": "married", "Married-AF-spouse": "married", "Never-married": "never married"}
TASKS = {
    "five groups: Adult, S = race": {},
    "three classes: Adult, married, never or no longer, S = sex": {},
    "two columns: Adult, S = sex and race, each": {"groups": "each"},
    "equalised odds: Adult, S = sex, within labels": {"condition_on_label": True},
}
HEAD = f"""\
# Other tasks, and small tables

`python -m benchmarks.tasks`. Adult (adult.data), two thirds train and a third tests, {SPLITS} splits: the code is
trained to a limit on the disparity, and the test rows show the largest total variation between two groups of one column
(within labels: of one label). Limit 1 asks for nothing. "Boosted trees" predict without protection."""
SMALL_HEAD = f"""\
{SMALL:,} rows, of which 300 calibrate, {SAMPLES} samples of each table; the other rows of the table score. Accuracy of
our certified decision, and of a logistic regression whose decision has to keep the same limit by the same bound on the
same rows; the difference where both are certified."""


def jobs(names: list[str]) -> list[Job]:
    """List the fits: every task and limit, and every sample of a small table."""
    tasks = [
        Job(job="tasks", task=task, limit=limit, split=k) for task in TASKS for limit in LIMITS for k in range(SPLITS)
    ]
    small = [
        Job(job="small", dataset=name, promise=promise, sample=k)
        for name in LOADERS
        for promise in PROMISES
        for k in range(SAMPLES)
    ]
    return [job for job in tasks + small if not names or job.job in names]


def table_of(task: str) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Return X, y and the sensitive columns of a task."""
    data = load_adult()
    X, y, s = data.X, data.y.to_numpy(), data.s.astype(str).to_frame("sex")
    if task.startswith("five"):
        X, s = X.drop(columns="race"), X[["race"]].astype(str)
    if task.startswith("two"):
        X, s = X.drop(columns="race"), s.assign(race=X.race.astype(str))
    if task.startswith("three"):
        y = X["marital-status"].astype(str).map(MARRIED).fillna("no longer").to_numpy()
        X = X.drop(columns=["marital-status", "relationship"])
    return X, y, s


def tasks(job: Job) -> dict[str, Any]:
    """Train a code to a limit and look at it on test rows."""
    X, y, s = table_of(job.task)
    train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=job.split)
    model = FairCodeClassifier(job.limit, random_state=job.split, **TASKS[job.task])
    model.fit(X.iloc[train], y[train], sensitive_features=s.iloc[train])
    within = {"y": y[test]} if model.condition_on_label else {}
    proof = certify(model, X.iloc[test], sensitive_features=s.iloc[test], **within)
    bounds = [bound for bound in proof.bounds if not within or bound.label is not None]
    plain = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    plain.fit(X.iloc[train].apply(as_category), y[train])
    return {
        "shown": max(bound.estimated_total_variation for bound in bounds),
        "bound": max(bound.total_variation for bound in bounds),
        "accuracy": float((model.predict(X.iloc[test]) == y[test]).mean()),
        "constant": float(pd.Series(y[test]).value_counts(normalize=True).max()),
        "plain": float((plain.predict(X.iloc[test].apply(as_category)) == y[test]).mean()),
    }


def as_category(column: pd.Series) -> pd.Series:
    """Return a column of texts as categories, others as they are."""
    return column if pd.api.types.is_numeric_dtype(column) else column.astype("category")


def small(job: Job) -> dict[str, Any]:
    """Certify the decisions of our model and of a logistic regression on a small table."""
    data = LOADERS[job.dataset]()
    X, y, s = data.X.reset_index(drop=True), data.y.to_numpy(), data.s.astype(str).to_numpy()
    order = np.random.default_rng(job.sample).permutation(len(y))
    own, fresh = order[:SMALL], order[SMALL:]
    found: dict[str, Any] = {"decision": None, "logistic": None}
    limits = {"promise": "class", "max_disparity": job.promise, "random_state": job.sample}
    ours = CertifiedClassifier(FairCodeClassifier(random_state=0), **limits)
    try:
        ours.fit(X.iloc[own], y[own], sensitive_features=s[own])
        found["decision"] = float((ours.predict(X.iloc[fresh]) == y[fresh]).mean())
    except NotCertifiedError as error:
        found["rows_needed"] = error.rows_needed
    train, held = train_test_split(own, test_size=0.3, random_state=job.sample)  # as CertifiedClassifier does
    plain = make_pipeline(TableEncoder(), LogisticRegression(max_iter=1_000)).fit(X.iloc[train], y[train])
    if certify(plain.predict(X.iloc[held]), sensitive_features=s[held]).total_variation <= job.promise:
        found["logistic"] = float((plain.predict(X.iloc[fresh]) == y[fresh]).mean())
    return found


def work(job: Job) -> dict[str, Any]:
    """Return the result of a job."""
    return {"tasks": tasks, "small": small}[job.job](job)


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    lines = [
        *HEAD.splitlines(),
        "",
        "| task | limit | shown | bound | accuracy | most frequent class | boosted trees |",
    ]
    lines.append("|---" * 7 + "|")
    frame = pd.DataFrame([{**r, **r["result"]} for r in records if r["job"] == "tasks"])
    for (task, limit), own in frame.groupby(["task", "limit"], sort=False) if len(frame) else ():
        scores = [f"{own[name].mean():.4f}" for name in ("shown", "bound", "accuracy", "constant", "plain")]
        lines.append(f"| {task} | {limit:g} | {' | '.join(scores)} |")
    lines += ["", *SMALL_HEAD.splitlines(), ""]
    lines += [
        "| | limit | ours certified | regressions certified | accuracy, ours | regression | ours less regression |"
    ]
    lines.append("|---" * 7 + "|")
    frame = pd.DataFrame([{**r, **r["result"]} for r in records if r["job"] == "small"])
    for (name, promise), own in frame.groupby(["dataset", "promise"], sort=False) if len(frame) else ():
        code, logistic = own.decision.astype(float), own.logistic.astype(float)
        counts = [f"{scores.notna().sum()} of {len(own)}" for scores in (code, logistic)]
        apart = (code - logistic).dropna()
        cells = [f"{code.mean():.3f}", f"{logistic.mean():.3f}", f"{apart.mean():+.3f} (least {apart.min():+.3f})"]
        lines.append(f"| {name} | {promise:g} | {' | '.join([*counts, *cells])} |")
    return lines


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, work, FOLDER, tables)
