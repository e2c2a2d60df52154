"""The JSON record of a fit: all that is known of it as plain values, and how often its table was fitted before."""

import datetime
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.auditing.auditor import column_leakage
from fairbits.certificate.released_code import certified_decision, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import RowSketch, one_row_each, row_hashes, table_fingerprint
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.modelfile.manifest import RECORD
from fairbits.report.page import FORMAT
from fairbits.storage import versions
from fairbits.tables.task import Task
from fairbits.workflow.decision_checks import class_rates
from fairbits.workflow.fit_task import Fit

SCORE_BINS = 20
PIECE = 50_000  # rows


def attempt_number(output: Path, of_table: str) -> int:
    """Return how often a table was fitted into folders beside `output`, this time included."""
    earlier = 0
    for file in output.absolute().parent.glob(f"*/{RECORD}"):
        with suppress(OSError, ValueError, AttributeError):  # records of something else
            earlier += json.loads(file.read_bytes()).get("table_hash") == of_table
    return earlier + 1


def fit_record(fit: Fit, task: Task, source: str, *, fewest_shown: int = 10) -> dict[str, Any]:
    """Return all that is known of a fit to the table `source` as plain lists, numbers and texts.

    The scores of groups of fewer rows than `fewest_shown` are left out: they would show single people.
    """
    X, y, s = task.part(fit.test)
    method, Z = fitted_code(fit.model, X, s)
    encoder = inner_encoder(fit.model[0])
    groups = {name: GroupEncoder(min_group_size=1).fit(task.s[[name]]) for name in task.s}
    numbers = {name: groups[name].transform(s[[name]])[:, 0] for name in groups}
    theta = method.code_probabilities(Z)
    about: list[Any] = [("label", task.label, np.searchsorted(method.classes_, y), method.classes_)]
    about += [("sensitive", name, numbers[name], groups[name].names_[0]) for name in groups]
    bits = []
    for role, name, number, names in about:
        leak = column_leakage(theta, theta, number, name, names)
        whole = {"joint": leak.joint, "lower": leak.lower, "entropy": leak.entropy}
        bits.append({"about": name, "role": role, "each": leak.each_bit, **whole})
    score = method.predict_proba(Z)[:, -1]
    counts = [
        {"column": name, "group": group, "counts": np.histogram(score[number == i], SCORE_BINS, (0, 1))[0].tolist()}
        for name, number in numbers.items()
        for i, group in enumerate(groups[name].names_[0])
    ]
    positive = fit.asked["favourable"] or fit.asked["odds_label"] or str(method.classes_[-1])
    decision = class_rates(method, Z, y, s, positive, fit.asked["confidence"], fit.asked["reference"])
    if certified_decision(fit.released):
        bits = []  # nobody receives them
    # What recognises the table, or many of its rows, if they come back to certify the fit; it recognises no single row.
    pieces = (task.part(np.arange(i, min(i + PIECE, len(task.y)))) for i in range(0, len(task.y), PIECE))
    hashes = np.concatenate([row_hashes(encoder.own_columns(fitted_code(fit.model, X, s)[1])) for X, _, s in pieces])
    return {
        "format": FORMAT,
        "source": source,
        "table": table_fingerprint(hashes),
        "sketch": asdict(RowSketch.of(hashes[one_row_each(task.person, len(hashes))])),
        "task": {
            "label": task.label,
            "classes": [str(c) for c in method.classes_],
            "sensitive": list(task.s.columns),
            "groups": task.groups,
            "group_sizes": task.group_sizes,
            "cuts": task.cuts,
            "pooled": task.pooled,
            "rows": fit.rows,
            "columns": encoder.describe().splitlines(),
            "notes": task.notes,
        },
        "asked": fit.asked,
        "method": {
            "name": type(method).__name__,
            "varied": fit.varied,
            "value": getattr(method, fit.varied),
            "code_size": method.code_size,
            "hard": method.is_hard,
        },
        "certified": fit.certified,
        "verdict": fit.verdict,
        "borderline": fit.borderline,
        "other_verdict": fit.other_verdict,
        "useful_limit": fit.useful_limit,
        "refusal": fit.refusal,
        "certificate": fit.certificate.to_dict(),
        "audit": fit.audit.to_dict(),
        "alternatives": [asdict(scored) for scored in fit.alternatives],
        "tested": fit.tested,
        "decision": decision,
        "bits": bits,
        "scores_by_group": [found for found in counts if sum(found["counts"]) >= fewest_shown],
        "history": method.history_,
        "best_epoch": method.best_epoch_,
        "front": fit.front,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }
