"""One record of what a representation does and reveals: scores, information, certificate, probes, concerns."""

import warnings
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from fairbits.auditing.code_leakage import Leakage, column_leakage
from fairbits.auditing.probes import FULL, QUICK, QUICK_ROWS, ProbeResult, run_probes, score_intervals
from fairbits.certificate import Certificate, certify
from fairbits.certificate.certification import CodedRows, check_fresh
from fairbits.certificate.released_code import binary_digits, fitted_code
from fairbits.encoding import GroupEncoder, sensitive_columns, take_rows
from fairbits.encoding.people import one_row_each
from fairbits.errors import InputError
from fairbits.rounding import at_least, at_most, percent

MOST_CATEGORIES = 256
REPEATS = 2  # rows per distinct value from which a representation is counted as a code
PROBES_TITLE = (
    "Probes that try to recover S ({} intervals; 'permuted': 95% of the AUCs with permuted groups are below; "
    "'shuffled': AUC after training on shuffled groups)"
)
PROBE = (
    "  {column:<12} {view:<10} {model:<10} AUC {auc:.4f} [{auc_low:.4f}, {auc_high:.4f}]  permuted "
    "{permuted_auc_high:.4f}  shuffled {shuffled_auc:.4f}  p {p_value:.3f}  balanced accuracy {balanced_accuracy:.4f} "
    "[{balanced_accuracy_low:.4f}, {balanced_accuracy_high:.4f}]"
)


@dataclass(frozen=True)
class Adversary:
    """How well a column can be guessed from the release: what a probe reaches, and what no attack exceeds."""

    column: str
    reached: float  # the best probe of the release has at least this balanced accuracy, for all its probes together
    by: str  # the probe
    at_most: float | None  # certified for everyone
    chance: float  # of guessing


@dataclass(frozen=True)
class Audit:
    """What a representation does, what it reveals about the sensitive columns, and what is not known about it."""

    subject: str
    rows: int
    confidence: float
    task: dict[str, float] | None
    intervals: dict[str, tuple[float, float]]  # of accuracy and AUC, for the model as it is
    leakage: tuple[Leakage, ...]
    certificate: Certificate | None
    probes: tuple[ProbeResult, ...]
    adversaries: tuple[Adversary, ...]
    unavailable: dict[str, str]
    concerns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        return {**asdict(self), "certificate": None if self.certificate is None else self.certificate.to_dict()}

    def __str__(self) -> str:
        lines = [f"Audit of {self.subject} on {self.rows} rows"]
        if self.task:
            ends = {name: f" [{low:.4f}, {high:.4f}]" for name, (low, high) in self.intervals.items()}
            lines.append("Task: " + ", ".join(f"{name} {x:.4f}{ends.get(name, '')}" for name, x in self.task.items()))
        for leak in self.leakage:
            groups = ", ".join(f"{name} {n}" for name, n in leak.rows.items())
            lines.append(f"Leakage about {leak.column} (H(S) = {leak.entropy:.4f} bits; rows: {groups})")
            if leak.joint is not None:
                lines.append(f"  whole code: {leak.joint:.4f} bits on these rows, {leak.lower:.4f} on held-out halves")
            if leak.each_bit is not None:
                bits = " ".join(f"{value:.4f}" for value in leak.each_bit)
                lines.append(f"  each bit alone: {bits}; sum {leak.total:.4f}, which bounds nothing")
        lines += [str(self.certificate)] if self.certificate else []
        lines += [PROBES_TITLE.format(percent(self.confidence))] if self.probes else []
        lines += [PROBE.format(**vars(p)) for p in self.probes]
        for a in self.adversaries:
            found = f"No probe beats chance ({a.chance:.4f}) at guessing {a.column}"
            if a.reached > a.chance:
                found = (
                    f"The probe {a.by} guesses {a.column} with a balanced accuracy of at least {at_least(a.reached, 4)}"
                )
            most = "nothing is certified" if a.at_most is None else f"no attack can exceed {at_most(a.at_most, 4)}"
            lines.append(f"{found}; {most} ({percent(self.confidence)} confidence each).")
        lines += [f"Not available, {name}: {reason}" for name, reason in self.unavailable.items()]
        return "\n".join([*lines, *(f"Warning: {text}" for text in self.concerns)])


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
    person: Any = None,
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
    person : one identifier per row, where people have several rows: one row of each person, drawn at random, is audited
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
        raise InputError("The comparison with `unmitigated` needs labels.", remedy="Pass y.")
    if person is not None:
        chosen = one_row_each(person, len(next(iter(sensitive_columns(sensitive_features).values()))), random_state)
        if X is None:  # a representation
            estimator_or_representation = take_rows(estimator_or_representation, chosen)
        X, y, sensitive_features = (take_rows(part, chosen) for part in (X, y, sensitive_features))
    subject = read_subject(estimator_or_representation, X, draws, random_state, sensitive_features)
    model, rows, (released, values) = subject.model, subject.X, next(iter(subject.views.items()))
    n = len(values)
    encoder = getattr(model, "group_encoder_", None) or GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=n)
    groups = encoder.transform(sensitive_features, n_rows=n)
    columns = list(zip(groups.T, encoder.titles_, encoder.names_, strict=True))
    leakage = tuple(column_leakage(subject.law, subject.bits, *column, random_state) for column in columns)
    certificate, found, adversaries = None, list[ProbeResult](), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_fresh(model, rows)
        if subject.law is not None:
            hard = getattr(model, "is_hard", True)  # values of any other model are what they are
            seeded = getattr(model, "random_state", None) is not None and not hard
            coded = CodedRows(subject.law, encoder, seeded, hard)
            certificate = certify(coded, sensitive_features=sensitive_features, y=y, confidence=confidence)
    most = {b.column: b.balanced_accuracy for b in certificate.bounds if b.label is None} if certificate else {}
    for s, title, names in columns:
        results = _probe(subject.views, s, title, probes, confidence, random_state)
        best = max((r for r in results if r.view == released), key=lambda r: r.proved_balanced_accuracy)
        found += results
        reached, at_most, chance = best.proved_balanced_accuracy, most.get(title), 1 / len(names)
        adversaries.append(Adversary(title, reached, best.model, at_most, chance))
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    concerns += model.concerns(rows, y, sensitive_features) if hasattr(model, "concerns") else []
    task, intervals = (None, {}) if model is None or y is None else _task(subject, np.asarray(y), groups, confidence)
    if unmitigated is not None and task is not None:
        from fairbits.estimators.diagnostics import held_out_scores, worse_than_unmitigated  # needs torch

        plain = held_out_scores(*fitted_code(unmitigated, X, sensitive_features), np.asarray(y), groups)
        concerns += worse_than_unmitigated(task, plain, groups)
    for concern in concerns:
        warnings.warn(concern, stacklevel=2)
    unavailable = ({} if task else {"task": "there are no labels."}) | subject.unavailable
    facts = task, intervals, leakage, certificate, tuple(found), tuple(adversaries)
    return Audit(subject.name, n, confidence, *facts, unavailable, tuple(map(str, concerns)))


@dataclass(frozen=True)
class Subject:
    """The representation in the forms the audit needs."""

    name: str
    model: Any  # with predict_proba, for the task; else None
    X: Any  # rows as the model sees them
    views: dict[str, np.ndarray]  # what probes are given; the first is what is released
    law: np.ndarray | None  # (n, bits) chances of bits that say the same as the release; None where there is no such
    bits: np.ndarray | None  # (n, m) chances of the code's own bits
    unavailable: dict[str, str]


def read_subject(source: Any, X: Any, draws: int, random_state: int, sensitive_features: Any) -> Subject:
    """Return the subject of an audit: a model with a code, any other model, or a table of values."""
    source, X = fitted_code(source, X, sensitive_features)
    name, task = type(source).__name__, dict[str, str]()
    if not (isinstance(draws, Integral) and draws >= 2):
        raise InputError("must be a whole number of at least 2.", argument="draws", value=draws)
    if hasattr(source, "__array__") or hasattr(source, "toarray") or isinstance(source, (list, tuple)):
        if X is not None:
            raise InputError("A representation is audited as it is.", remedy="Pass it alone, with X=None.")
        name, values, source = "the representation", source, None
        task = {"task": "a representation alone predicts nothing; audit a model."}
    elif X is None:
        raise InputError("X is None, but a model is audited on rows.", remedy="Pass the rows as X.")
    elif hasattr(source, "code_probabilities"):
        return _read_code(source, X, draws, random_state)
    elif hasattr(source, "predict_proba"):
        values = source.transform(X) if hasattr(source, "transform") else source.predict_proba(X)
    elif hasattr(source, "transform"):
        values, source, task = source.transform(X), None, {"task": f"{name} has no predict_proba."}
    else:
        raise InputError(f"{name} has neither transform nor predict_proba.", remedy="Pass what it computes instead.")
    values, law = _numbers(values), None
    unavailable = task | {"several draws, theta": "how the representation was drawn is not known."}
    bits = values if np.isin(values, (0, 1)).all() else None
    if bits is None:
        unavailable["information of each bit"] = "the columns are not bits."
    distinct, cell = np.unique(values, axis=0, return_inverse=True)
    if len(distinct) * REPEATS <= len(values):
        law = binary_digits(cell.ravel(), len(distinct))
    else:
        unavailable["joint information"] = unavailable["certificate"] = (
            f"it has {len(distinct)} different values in {len(values)} rows, and continuous values cannot be "
            "certified. Certify the decision (a score above a threshold), or use a fairbits code."
        )
    return Subject(name, source, X, {"as given": values}, law, bits, unavailable)


def _read_code(source: Any, X: Any, draws: int, random_state: int) -> Subject:
    """Return a hard code as it is; of a random one, also what several draws and their probabilities would reveal."""
    theta, rng = source.code_probabilities(X), np.random.default_rng(random_state)
    views = {"code": theta.astype(np.uint8)}
    if not source.is_hard:
        drawn = [(rng.random(theta.shape) < theta).astype(np.uint8) for _ in range(draws)]
        views = {"one draw": drawn[0], f"{draws} draws": np.mean(drawn, axis=0), "theta": theta}
    return Subject(type(source).__name__, source, X, views, theta, theta, {})


def _numbers(values: Any) -> np.ndarray:
    """Return a table of numbers that reveals the same: categories become a column each, or their number if many."""
    table = values.to_pandas() if hasattr(values, "to_pandas") else values
    table = table.toarray() if hasattr(table, "toarray") else table  # scipy's sparse matrices
    if not hasattr(table, "columns") and np.ndim(table) not in (1, 2):
        raise InputError(f"The representation has shape {np.shape(table)}.", remedy="Pass one row per person.")
    columns = []
    for _, column in pd.DataFrame(table).items():
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            codes, names = pd.factorize(column, use_na_sentinel=False)
            columns.append(np.eye(len(names))[codes] if len(names) <= MOST_CATEGORIES else codes)
    numbers = np.column_stack(columns).astype(np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("The representation is empty, or has missing or infinite values.", remedy="Fill or drop them.")
    return numbers


def _task(subject: Subject, y: np.ndarray, groups: np.ndarray, confidence: float) -> tuple[dict, dict]:
    """Return the scores, and intervals of accuracy and AUC: averaged over draws and of the one draw that is scored."""
    from fairbits.estimators.diagnostics import held_out_scores  # needs torch

    model, codes = subject.model, subject.views.get("one draw")
    labels = np.searchsorted(model.classes_, y)
    intervals = score_intervals(model.predict_proba(subject.X), labels, confidence)
    if codes is not None:
        drawn = score_intervals(model.decode(codes), labels, confidence)
        intervals |= {f"one_draw_{name}": interval for name, interval in drawn.items()}
    return held_out_scores(model, subject.X, y, groups, codes), intervals


def _probe(views: dict, groups: np.ndarray, title: str, probes: str, confidence: float, seed: int) -> list[ProbeResult]:
    """Run the probes on every view of at most so many rows; groups of a single row are left out."""
    rows = np.random.default_rng(seed).permutation(len(groups))
    if probes == "quick" and len(rows) > QUICK_ROWS:  # every so many of the rows, group by group
        rows = rows[groups[rows].argsort(kind="stable")][np.linspace(0, len(rows) - 1, QUICK_ROWS).astype(np.int64)]
    rows = np.sort(rows[np.bincount(groups[rows])[groups[rows]] >= 2])
    s, models = np.unique(groups[rows], return_inverse=True)[1], QUICK if probes == "quick" else FULL
    options: dict[str, Any] = {"models": models, "confidence": confidence, "random_state": seed}
    return [r for view, Z in views.items() for r in run_probes(Z[rows], s, view=view, column=title, **options)]
