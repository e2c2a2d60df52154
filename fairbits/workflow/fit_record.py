"""A fit as one JSON record: what reports, model cards and the command line read."""

import datetime
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from fairbits.certificate.releasing import fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import row_hashes, table_fingerprint
from fairbits.information import information_sandwich, neuronwise_information, share_entropy
from fairbits.report.page import FORMAT
from fairbits.storage import versions
from fairbits.tables.fitted_model import table_columns, table_encoder
from fairbits.tables.task import Task
from fairbits.workflow.fit_task import Fit, FitOptions

SCORE_BINS = 20
PIECE = 50_000  # rows


def fit_record(fit: Fit, task: Task, options: FitOptions, source: str, *, fewest_shown: int = 10) -> dict[str, Any]:
    """Return all that is known of a fit to the table `source` as plain lists, numbers and texts.

    The scores of groups of fewer rows than `fewest_shown` are left out: they would show single people.
    """
    X, y, s = task.part(fit.test)
    method, Z = fitted_code(fit.model, X, s)
    groups = {name: GroupEncoder(min_group_size=1).fit(task.s[[name]]) for name in task.s}
    numbers = {name: groups[name].transform(s[[name]])[:, 0] for name in groups}
    theta = torch.from_numpy(method.code_probabilities(Z))
    bits = [_bits(task.label, "label", theta, np.searchsorted(method.classes_, y))]
    bits += [_bits(name, "sensitive", theta, number) for name, number in numbers.items()]
    score = method.predict_proba(Z)[:, -1]
    counts = [
        {"column": name, "group": group, "counts": np.histogram(score[number == i], SCORE_BINS, (0, 1))[0].tolist()}
        for name, number in numbers.items()
        for i, group in enumerate(groups[name].names_[0])
    ]
    # What recognises the whole table if it comes back to certify the fit; it recognises no single row.
    pieces = (task.part(np.arange(i, min(i + PIECE, len(task.y)))) for i in range(0, len(task.y), PIECE))
    hashes = [row_hashes(table_columns(fit.model, fitted_code(fit.model, X, s)[1])) for X, _, s in pieces]
    return {
        "format": FORMAT,
        "source": source,
        "table": table_fingerprint(np.concatenate(hashes)),
        "task": {
            "label": task.label,
            "classes": [str(c) for c in method.classes_],
            "sensitive": list(task.s.columns),
            "groups": task.groups,
            "group_sizes": task.group_sizes,
            "bins": task.bins,
            "rows": fit.rows,
            "columns": table_encoder(fit.model).describe().splitlines(),
            "notes": task.notes,
        },
        "asked": asdict(options),
        "method": {
            "name": type(method).__name__,
            "varied": fit.varied,
            "value": getattr(method, fit.varied),
            "code_size": method.code_size,
            "hard": method.is_hard,
        },
        "certified": fit.certified,
        "refusal": fit.refusal,
        "certificate": fit.certificate.to_dict(),
        "audit": fit.audit.to_dict(),
        "alternatives": [asdict(scored) for scored in fit.alternatives],
        "tested": fit.tested,
        "bits": bits,
        "scores_by_group": [found for found in counts if sum(found["counts"]) >= fewest_shown],
        "history": method.history_,
        "best_epoch": method.best_epoch_,
        "front": fit.front,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }


def _bits(name: str, role: str, theta: torch.Tensor, number: np.ndarray) -> dict[str, Any]:
    """Return what the code, or one draw of a random one, reveals about a column on the test rows, in bits.

    For `each` bit and for the whole code: `joint` is above the population's value on average, `lower` below it.
    """
    _, numbers, counts = np.unique(number, return_inverse=True, return_counts=True)
    groups = torch.from_numpy(numbers)
    lower, joint = information_sandwich(theta, groups, generator=torch.Generator().manual_seed(0))
    whole = {"joint": float(joint), "lower": float(lower), "entropy": share_entropy(counts / len(number))}
    return {"about": name, "role": role, "each": neuronwise_information(theta, groups).tolist(), **whole}
