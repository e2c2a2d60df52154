"""A fit as one JSON record: what reports, model cards and the command line read."""

import datetime
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import row_hashes, table_fingerprint
from fairbits.information import information_sandwich, neuronwise_information, share_entropy
from fairbits.report.page import FORMAT
from fairbits.storage import versions
from fairbits.tables.task import Task
from fairbits.workflow.fit_task import Fit, FitOptions

SCORE_BINS = 20
PIECE = 50_000  # rows


def fit_record(fit: Fit, task: Task, options: FitOptions, source: str, *, fewest_shown: int = 10) -> dict[str, Any]:
    """Return all that is known of a fit as plain lists, numbers and texts, without the seed of any draw.

    Parameters
    ----------
    source : the name of the table
    fewest_shown : rows of a group whose scores are recorded; those of fewer would show single people
    """
    encoder, method = fit.model[:-1], fit.model[-1]
    return {
        "format": FORMAT,
        "source": source,
        "table": _fingerprint(fit, task),
        "task": {
            "label": task.label,
            "classes": [str(c) for c in method.classes_],
            "sensitive": list(task.s.columns),
            "groups": task.groups,
            "group_sizes": task.group_sizes,
            "bins": task.bins,
            "rows": fit.rows,
            "columns": encoder[0].describe().splitlines(),
            "notes": task.notes,
        },
        "asked": {name: value for name, value in asdict(options).items() if name != "seed"},
        "method": {"name": type(method).__name__, "gamma": method.gamma, "code_size": method.code_size},
        "certified": fit.certified,
        "refusal": fit.refusal,
        "certificate": fit.certificate.to_dict(),
        "audit": fit.audit.to_dict(),
        "alternatives": [asdict(scored) for scored in fit.alternatives],
        "tested": fit.tested,
        "bits": _bits(fit, task),
        "scores_by_group": _scores_by_group(fit, task, fewest_shown),
        "history": method.history_,
        "best_epoch": method.best_epoch_,
        "plane": fit.plane,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }


def _fingerprint(fit: Fit, task: Task) -> str:
    """Return what recognises the whole table if it comes back to certify the fit; it recognises no single row."""
    pieces = [task.X.iloc[i : i + PIECE] for i in range(0, len(task.X), PIECE)]
    return table_fingerprint(np.concatenate([row_hashes(np.asarray(fit.model[:-1].transform(X))) for X in pieces]))


def _bits(fit: Fit, task: Task) -> list[dict[str, Any]]:
    """Return what one draw reveals about the label and every sensitive column on the test rows, in bits.

    For `each` bit and for the whole code: `joint` is above the population's value on average, `lower` below it.
    """
    X, y, s = fit.test_rows(task)
    theta = torch.from_numpy(fit.model[-1].code_probabilities(fit.model[:-1].transform(X)))
    columns = [(task.label, "label", np.searchsorted(fit.model[-1].classes_, y))]
    columns += [(name, "sensitive", number) for name, number, _ in _sensitive_columns(task, s)]
    found = []
    for name, role, number in columns:
        _, numbers, counts = np.unique(number, return_inverse=True, return_counts=True)
        groups = torch.from_numpy(numbers)
        lower, joint = information_sandwich(theta, groups, generator=torch.Generator().manual_seed(0))
        whole = {"joint": float(joint), "lower": float(lower), "entropy": share_entropy(counts / len(number))}
        each = neuronwise_information(theta, groups).tolist()
        found.append({"about": name, "role": role, "each": each, **whole})
    return found


def _scores_by_group(fit: Fit, task: Task, fewest: int) -> list[dict[str, Any]]:
    """Count the expected probability of the last class in bins, for every group of enough rows."""
    X, _, s = fit.test_rows(task)
    score = fit.model.predict_proba(X)[:, -1]
    counts = [
        {"column": name, "group": group, "counts": np.histogram(score[number == i], SCORE_BINS, (0, 1))[0].tolist()}
        for name, number, groups in _sensitive_columns(task, s)
        for i, group in enumerate(groups)
    ]
    return [found for found in counts if sum(found["counts"]) >= fewest]


def _sensitive_columns(task: Task, s: pd.DataFrame) -> list[tuple[str, np.ndarray, list[str]]]:
    """Return name, group numbers of rows and group names of each sensitive column on its own."""
    encoders = {name: GroupEncoder(min_group_size=1).fit(task.s[[name]]) for name in task.s.columns}
    return [(name, e.transform(s[[name]])[:, 0], e.names_[0]) for name, e in encoders.items()]
