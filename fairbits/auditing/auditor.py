"""One record of what a representation does and tells: scores, information, certificate, probes, concerns."""

import warnings
from typing import Any

import numpy as np
import torch

from fairbits.auditing.audit_record import Adversary, Audit, Leakage
from fairbits.auditing.intervals import score_intervals
from fairbits.auditing.probes import FULL, QUICK, QUICK_ROWS, ProbeResult, run_probes
from fairbits.auditing.subject import Subject, group_encoder, read_subject
from fairbits.certificate import Certificate, certify_groups, check_fresh, column_titles, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.errors import InputError
from fairbits.estimators.concerns import conditional_entropy, worse_than_unmitigated
from fairbits.estimators.held_out import held_out_scores
from fairbits.information import information_sandwich, neuronwise_information


def audit(
    estimator_or_representation: Any,
    X: Any = None,
    y: Any = None,
    *,
    sensitive_features: Any,
    probes: str = "quick",
    confidence: float = 0.95,
    draws: int = 16,
    unmitigated: Any = None,
    random_state: int = 0,
) -> Audit:
    """Say what a representation does for the label and what it tells about the sensitive columns.

    Pass rows that played no part in training. Everything that can be known is in the record; what cannot, for a
    representation without a code, is named there with the reason.

    Parameters
    ----------
    estimator_or_representation : a fitted model (ours, a pipeline, anything with predict_proba or transform), or a
        representation: array or table, one row per person
    X : the rows, for a model
    y : their labels, for the task's scores and the bounds within each label
    sensitive_features : one or several columns
    probes : "quick" (logistic regression and boosted trees, at most 20,000 rows) or "full" (also a forest of 1000
        trees, a network and nearest neighbours, all rows)
    confidence : of every interval and bound on its own
    draws : codes per person in the view of several draws
    unmitigated : a fitted model without protection; a concern is raised where the audited one is less fair
    random_state : seed of the audit's own draws and halves

    Examples
    --------
    >>> from fairbits.datasets import make_xor
    >>> data = make_xor(2000, random_state=0)
    >>> found = audit(data.draw_codes(0), sensitive_features=data.groups)
    >>> f"bit by bit {found.leakage[0].total:.2f}, the whole code {found.leakage[0].joint:.2f} bits"
    'bit by bit 0.00, the whole code 0.28 bits'
    """
    if probes not in ("quick", "full"):
        raise InputError(f"probes={probes!r} must be 'quick' or 'full'.")
    if unmitigated is not None and y is None:
        raise InputError("unmitigated is compared by its predictions, which needs labels: pass y.")
    subject = read_subject(estimator_or_representation, X, draws, random_state)
    n = len(subject.views[subject.released])
    encoder = group_encoder(subject, sensitive_features)
    groups = encoder.transform(sensitive_features, n_rows=n)
    columns = list(zip(groups.T, column_titles(encoder), encoder.names_, strict=True))
    leakage = tuple(_leakage(subject, *column, random_state) for column in columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = _certificate(subject, encoder, sensitive_features, y, confidence)
    results = [r for s, title, _ in columns for r in _probe(subject, s, title, probes, confidence, random_state)]
    task = _task(subject.model, subject.X, y, groups, subject.views.get("one draw"))
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    concerns += _concerns(subject, y, sensitive_features, groups, task, unmitigated, X)
    for concern in concerns:
        warnings.warn(concern, stacklevel=2)
    return Audit(
        subject=subject.name,
        rows=n,
        confidence=confidence,
        task=task,
        intervals={} if task is None else _intervals(subject, y, confidence),
        leakage=leakage,
        certificate=certificate,
        probes=tuple(results),
        adversaries=tuple(
            _adversary(title, names, results, certificate, next(iter(subject.views))) for _, title, names in columns
        ),
        unavailable=({} if task else {"task": "y was not passed."}) | subject.unavailable,
        concerns=tuple(map(str, concerns)),
    )


def _certificate(subject: Subject, encoder: GroupEncoder, sensitive_features: Any, y: Any, confidence: float):
    """Certify what is released, where it has a law, and warn if the rows are not fresh."""
    check_fresh(subject.model, subject.X)
    if subject.law is None:
        return None
    law, seeded = torch.from_numpy(subject.law), getattr(subject.model, "random_state", None) is not None
    return certify_groups(law, encoder, sensitive_features, y=y, confidence=confidence, seeded=seeded)


def _leakage(subject: Subject, groups: np.ndarray, title: str, names: list[str], random_state: int) -> Leakage:
    present, numbers = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        raise InputError(f"sensitive_features holds only {names[present[0]]!r}; pass rows of at least two groups.")
    s = torch.from_numpy(numbers)
    each = None if subject.bits is None else neuronwise_information(torch.from_numpy(subject.bits), s).tolist()
    lower = joint = None
    if subject.law is not None:
        generator = torch.Generator().manual_seed(random_state)
        lower, joint = map(float, information_sandwich(torch.from_numpy(subject.law), s, generator=generator))
    return Leakage(
        column=title,
        rows={names[g]: int((groups == g).sum()) for g in present},
        entropy=conditional_entropy(groups[:, None]),
        each_bit=None if each is None else tuple(each),
        total=None if each is None else sum(each),
        joint=joint,
        lower=lower,
    )


def _probe(subject: Subject, groups: np.ndarray, title: str, probes: str, confidence: float, seed: int):
    """Run the probes on every view of at most so many rows; groups of a single row are left out."""
    rows = np.random.default_rng(seed).permutation(len(groups))
    if probes == "quick" and len(rows) > QUICK_ROWS:  # every so many of the rows, group by group
        rows = rows[groups[rows].argsort(kind="stable")][np.linspace(0, len(rows) - 1, QUICK_ROWS).astype(np.int64)]
    rows = np.sort(_repeated(groups, rows))
    s = np.unique(groups[rows], return_inverse=True)[1]
    models = QUICK if probes == "quick" else FULL
    options: dict[str, Any] = {"column": title, "models": models, "confidence": confidence, "random_state": seed}
    return [r for view, Z in subject.views.items() for r in run_probes(Z[rows], s, view=view, **options)]


def _repeated(groups: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return those of the rows whose group has another row among them."""
    return rows[np.bincount(groups[rows])[groups[rows]] >= 2]


def _adversary(
    title: str, groups: list[str], results: list[ProbeResult], certificate: Certificate | None, view: str
) -> Adversary:
    """Put what a probe reaches on the release beside what nobody passes."""
    best = max((r for r in results if r.column == title and r.view == view), key=lambda r: r.proved_balanced_accuracy)
    bounds = [] if certificate is None else [b for b in certificate.bounds if b.column == title and b.label is None]
    most = bounds[0].balanced_accuracy if bounds else None
    return Adversary(title, best.proved_balanced_accuracy, best.model, most, 1 / len(groups))


def _task(model: Any, X: Any, y: Any, groups: np.ndarray, codes: Any = None) -> dict[str, float] | None:
    return None if model is None or y is None else held_out_scores(model, X, np.asarray(y), groups, codes)


def _intervals(subject: Subject, y: Any, confidence: float) -> dict[str, tuple[float, float]]:
    """Return the intervals of accuracy and AUC, averaged over draws and of the one draw that is scored."""
    model, codes = subject.model, subject.views.get("one draw")
    labels = np.searchsorted(model.classes_, np.asarray(y))
    found = score_intervals(model.predict_proba(subject.X), labels, confidence)
    if codes is not None:
        drawn = score_intervals(model.decode(codes), labels, confidence)
        found |= {f"one_draw_{name}": interval for name, interval in drawn.items()}
    return found


def _concerns(subject: Subject, y, sensitive_features, groups, task, unmitigated, X) -> list[Warning]:
    found = subject.model.concerns(subject.X, y, sensitive_features) if hasattr(subject.model, "concerns") else []
    if unmitigated is None or task is None:
        return found
    plain, rows = fitted_code(unmitigated, X)
    return found + worse_than_unmitigated(task, _task(plain, rows, y, groups) or {}, groups)
