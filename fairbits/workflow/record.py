"""A fit as one JSON record: what reports, model cards and the command line read."""

import datetime
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from fairbits.encoding import GroupEncoder
from fairbits.information import neuronwise_information
from fairbits.records import versions
from fairbits.workflow.fit import Fit, FitOptions
from fairbits.workflow.task import Task

FORMAT = 1
SCORE_BINS = 20


def fit_record(fit: Fit, task: Task, options: FitOptions, source: str) -> dict[str, Any]:
    """Return all that is known of a fit as plain lists, numbers and texts; no seed of any draw is among it.

    Parameters
    ----------
    source : the name of the table
    """
    encoder, method = fit.model[:-1], fit.model[-1]
    return {
        "format": FORMAT,
        "source": source,
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
        "bits": _bits(fit, task),
        "scores_by_group": _scores_by_group(fit, task),
        "history": method.history_,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }


def _bits(fit: Fit, task: Task) -> list[dict[str, Any]]:
    """Return what each bit carries about the label and about every sensitive column on the test rows, in bits."""
    X, y, s = fit.test_rows(task)
    theta = torch.from_numpy(fit.model[-1].code_probabilities(fit.model[:-1].transform(X)))
    told = {task.label: np.searchsorted(fit.model[-1].classes_, y)}
    for name in task.s.columns:
        column = GroupEncoder(min_group_size=1).fit(task.s[[name]])
        told[name] = column.transform(s[[name]])[:, 0]
    about = {name: neuronwise_information(theta, torch.from_numpy(groups)).tolist() for name, groups in told.items()}
    return [{"bit": i, **{name: values[i] for name, values in about.items()}} for i in range(theta.shape[1])]


def _scores_by_group(fit: Fit, task: Task) -> list[dict[str, Any]]:
    """Count the expected probability of the last class in bins, for every group of every sensitive column."""
    X, _, s = fit.test_rows(task)
    score = fit.model.predict_proba(X)[:, -1]
    found = []
    for name in task.s.columns:
        encoder = GroupEncoder(min_group_size=1).fit(task.s[[name]])
        number = encoder.transform(s[[name]])[:, 0]
        for i, group in enumerate(encoder.names_[0]):
            counts = np.histogram(score[number == i], SCORE_BINS, (0, 1))[0]
            found.append({"column": name, "group": group, "counts": counts.tolist()})
    return found
