"""One record of what a representation does and reveals: scores, information, certificate, probes, concerns."""

import warnings
from typing import Any

import numpy as np
import torch

from fairbits.auditing.audit_record import Adversary, Audit, Leakage
from fairbits.auditing.intervals import score_intervals
from fairbits.auditing.probes import FULL, QUICK, QUICK_ROWS, ProbeResult, run_probes
from fairbits.auditing.subject import Subject, read_subject
from fairbits.certificate import certify_groups, check_fresh, column_titles, fitted_code
from fairbits.errors import InputError
from fairbits.estimators.diagnostics import held_out_scores, worse_than_unmitigated
from fairbits.information import information_sandwich, neuronwise_information
from fairbits.information.entropy import conditional_entropy


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
    """Measure what a representation does for the label and what it reveals about the sensitive columns.

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
        raise InputError("must be 'quick' or 'full'.", argument="probes", value=probes)
    if unmitigated is not None and y is None:
        raise InputError("Comparing with an unmitigated model needs labels.", remedy="Please pass y.")
    subject = read_subject(estimator_or_representation, X, draws, random_state)
    model, released = subject.model, subject.views[subject.released]
    encoder = subject.group_encoder(sensitive_features)
    groups = encoder.transform(sensitive_features, n_rows=len(released))
    columns = list(zip(groups.T, column_titles(encoder), encoder.names_, strict=True))
    leakage = tuple(_leakage(subject, *column, random_state) for column in columns)
    certificate = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_fresh(model, subject.X)
        if subject.law is not None:
            law, seeded = torch.from_numpy(subject.law), getattr(model, "random_state", None) is not None
            certificate = certify_groups(law, encoder, sensitive_features, y=y, confidence=confidence, seeded=seeded)
    results = [r for s, title, _ in columns for r in _probe(subject, s, title, probes, confidence, random_state)]
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    concerns += model.concerns(subject.X, y, sensitive_features) if hasattr(model, "concerns") else []
    task, intervals = (None, {}) if model is None or y is None else _task(subject, np.asarray(y), groups, confidence)
    if unmitigated is not None and task is not None:
        plain, rows = fitted_code(unmitigated, X)
        concerns += worse_than_unmitigated(task, held_out_scores(plain, rows, np.asarray(y), groups), groups)
    for concern in concerns:
        warnings.warn(concern, stacklevel=2)
    most = {} if certificate is None else {b.column: b.balanced_accuracy for b in certificate.bounds if b.label is None}
    adversaries = []
    for _, title, names in columns:
        tried = [r for r in results if (r.column, r.view) == (title, subject.released)]
        best = max(tried, key=lambda r: r.proved_balanced_accuracy)
        reached = best.proved_balanced_accuracy
        adversaries.append(Adversary(title, reached, best.model, most.get(title), 1 / len(names)))
    return Audit(
        subject=subject.name,
        rows=len(released),
        confidence=confidence,
        task=task,
        intervals=intervals,
        leakage=leakage,
        certificate=certificate,
        probes=tuple(results),
        adversaries=tuple(adversaries),
        unavailable=({} if task else {"task": "there are no labels."}) | subject.unavailable,
        concerns=tuple(map(str, concerns)),
    )


def _task(
    subject: Subject, y: np.ndarray, groups: np.ndarray, confidence: float
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return the scores, and intervals of accuracy and AUC: averaged over draws and of the one draw that is scored."""
    model, codes = subject.model, subject.views.get("one draw")
    labels = np.searchsorted(model.classes_, y)
    intervals = score_intervals(model.predict_proba(subject.X), labels, confidence)
    if codes is not None:
        drawn = score_intervals(model.decode(codes), labels, confidence)
        intervals |= {f"one_draw_{name}": interval for name, interval in drawn.items()}
    return held_out_scores(model, subject.X, y, groups, codes), intervals


def _leakage(subject: Subject, groups: np.ndarray, title: str, names: list[str], random_state: int) -> Leakage:
    present, numbers = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        problem = f"All rows have the same group of {title!r}, {names[present[0]]!r}."
        raise InputError(problem, remedy="Pass rows of at least two groups.")
    s = torch.from_numpy(numbers)
    each = lower = joint = None
    if subject.bits is not None:
        each = tuple(neuronwise_information(torch.from_numpy(subject.bits), s).tolist())
    if subject.law is not None:
        generator = torch.Generator().manual_seed(random_state)
        lower, joint = map(float, information_sandwich(torch.from_numpy(subject.law), s, generator=generator))
    return Leakage(
        column=title,
        rows={names[g]: int((groups == g).sum()) for g in present},
        entropy=conditional_entropy(groups[:, None]),
        each_bit=each,
        total=None if each is None else sum(each),
        joint=joint,
        lower=lower,
    )


def _probe(
    subject: Subject, groups: np.ndarray, title: str, probes: str, confidence: float, seed: int
) -> list[ProbeResult]:
    """Run the probes on every view of at most so many rows; groups of a single row are left out."""
    rows = np.random.default_rng(seed).permutation(len(groups))
    if probes == "quick" and len(rows) > QUICK_ROWS:  # every so many of the rows, group by group
        rows = rows[groups[rows].argsort(kind="stable")][np.linspace(0, len(rows) - 1, QUICK_ROWS).astype(np.int64)]
    rows = np.sort(rows[np.bincount(groups[rows])[groups[rows]] >= 2])
    s = np.unique(groups[rows], return_inverse=True)[1]
    models = QUICK if probes == "quick" else FULL
    options: dict[str, Any] = {"column": title, "models": models, "confidence": confidence, "random_state": seed}
    return [r for view, Z in subject.views.items() for r in run_probes(Z[rows], s, view=view, **options)]
