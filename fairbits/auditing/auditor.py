"""One record of what a representation does and reveals: scores, information, certificate, probes, concerns."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairbits.auditing.probes import FULL, QUICK, QUICK_ROWS, ProbeResult, run_probes, score_intervals
from fairbits.auditing.subjects import Subject, read_subject
from fairbits.certificate import Certificate, certify
from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.certificate.certification import CodedRows, check_fresh
from fairbits.certificate.confidence_bounds import group_sums
from fairbits.certificate.released_code import Release, fitted_code
from fairbits.encoding import GroupEncoder, sensitive_columns, take_rows
from fairbits.encoding.recognition import one_row_each
from fairbits.errors import InputError, InputWarning
from fairbits.information.array_information import held_out_information, share_entropy, shown_information
from fairbits.settings import check_value

PROBES_TITLE = (
    "Probes that try to recover the groups ({} intervals; 'permuted': 95% of the AUCs are below this if groups are "
    "permuted; 'shuffled': AUC after training on shuffled groups)"
)
PROBE = (
    "  {column:<12} {view:<10} {model:<10} AUC {auc:.4f} [{auc_low:.4f}, {auc_high:.4f}]  permuted "
    "{permuted_auc_high:.4f}  shuffled {shuffled_auc:.4f}  p {p_value:.3f}  balanced accuracy {balanced_accuracy:.4f} "
    "[{balanced_accuracy_low:.4f}, {balanced_accuracy_high:.4f}]"
)

LISTED_BITS = 16  # up to here all words of a random code are listed


UNFAIR = {"gpa": "ranking accuracy (GPA)", "audc": "scores (AUDC)", "discrimination": "rates of the class"}


class LessFairWarning(InputWarning):
    """The model is less fair than one without protection."""


@dataclass(frozen=True)
class Leakage:
    """What the released representation reveals about one sensitive column, in bits."""

    column: str
    rows: dict[str, int]  # per group
    entropy: float  # H(S), the most that can be revealed
    each_bit: tuple[float, ...] | None  # I(T_i;S)
    total: float | None  # their sum: neither above nor below the joint information in general
    joint: float | None  # I(T;S) of these rows; above the population's in expectation
    lower: float | None  # below the population's in expectation


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
        what = "the decision" if self.certificate and self.certificate.release.get("decision") else "whole code"
        for leak in self.leakage:
            groups = ", ".join(f"{name} {n}" for name, n in leak.rows.items())
            lines.append(f"Leakage about {leak.column} (H(S) = {leak.entropy:.4f} bits; rows: {groups})")
            if leak.joint is not None:
                lines.append(f"  {what}: {leak.joint:.4f} bits on these rows, {leak.lower:.4f} on held-out halves")
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
    check_value("probes", probes, one_of=("quick", "full"))
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
    encoder = subject.decides_for or getattr(model, "group_encoder_", None)
    encoder = encoder or GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=n)
    groups = encoder.transform(sensitive_features, n_rows=n)
    columns = list(zip(groups.T, encoder.titles_, encoder.names_, strict=True))
    leakage = tuple(column_leakage(subject.law, subject.bits, *column, random_state) for column in columns)
    certificate, found, adversaries = None, list[ProbeResult](), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_fresh(model, rows)
        if subject.law is not None:
            decision = subject.is_decision
            hard = decision or getattr(model, "is_hard", True)  # values of any other model are what they are
            seeded = getattr(model, "random_state", None) is not None and not hard
            coded = CodedRows(subject.law, encoder, seeded, hard, decision)
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
        from fairbits.estimators.codes import held_out_scores  # needs torch

        plain = held_out_scores(*fitted_code(unmitigated, X, sensitive_features), np.asarray(y), groups)
        if subject.decides_for is not None:  # nobody receives the scores
            plain = {"discrimination": plain["discrimination"]}
        concerns += worse_than_unmitigated(task, plain, groups)
    for concern in concerns:
        warnings.warn(concern, stacklevel=2)
    unavailable = ({} if task else {"task": "there are no labels."}) | subject.unavailable
    facts = task, intervals, leakage, certificate, tuple(found), tuple(adversaries)
    return Audit(subject.name, n, confidence, *facts, unavailable, tuple(map(str, concerns)))


def _task(subject: Subject, y: np.ndarray, groups: np.ndarray, confidence: float) -> tuple[dict, dict]:
    """Return the scores, and intervals of accuracy and AUC: averaged over draws and of the one draw that is scored."""
    from fairbits.estimators.codes import code_information, held_out_scores  # needs torch

    model, codes = subject.model, subject.views.get("one draw")
    labels = np.searchsorted(model.classes_, y)
    intervals = score_intervals(model.predict_proba(subject.X), labels, confidence)
    if codes is not None:
        drawn = score_intervals(model.decode(codes), labels, confidence)
        intervals |= {f"one_draw_{name}": interval for name, interval in drawn.items()}
    scores = held_out_scores(model, subject.X, y, groups, codes)
    if subject.decides_for is not None:  # nobody receives the code
        scores = {name: value for name, value in scores.items() if not name.startswith(("one_draw_", "information"))}
        scores["information"] = code_information(subject.views["decision"].astype(np.float64), groups)
    return scores, intervals


def worse_than_unmitigated(scores: dict[str, float], plain: dict[str, float], groups: np.ndarray) -> list[Warning]:
    """Return a warning if a fairness score (less is better) is clearly larger than that of an unmitigated model.

    Groups (n, columns) are numbered. Clearly: by more than 1.6 standard errors of a difference of two rates, at their
    largest variance and for the smallest groups; a rule of thumb, not a test.
    """
    smallest = min(np.sort(np.unique(column, return_counts=True)[1])[:2].tolist() for column in groups.T)
    margin = 1.645 * 0.5 * float(np.sqrt(np.sum(1 / np.array(smallest))))
    worse = [
        f"{words} {scores[name]:.3f} instead of {plain[name]:.3f}"
        for name, words in UNFAIR.items()
        if name in plain and scores[name] > plain[name] + margin
    ]
    problem = f"Groups differ more than without protection: {', '.join(worse)}."
    remedy = "Try another gamma, more epochs or another seed, and compare again."
    return [LessFairWarning(problem, remedy=remedy)] if worse else []


def _probe(views: dict, groups: np.ndarray, title: str, probes: str, confidence: float, seed: int) -> list[ProbeResult]:
    """Run the probes on every view of at most so many rows; groups of a single row are left out."""
    rows = np.random.default_rng(seed).permutation(len(groups))
    if probes == "quick" and len(rows) > QUICK_ROWS:  # every so many of the rows, group by group
        rows = rows[groups[rows].argsort(kind="stable")][np.linspace(0, len(rows) - 1, QUICK_ROWS).astype(np.int64)]
    rows = np.sort(rows[np.bincount(groups[rows])[groups[rows]] >= 2])
    s, models = np.unique(groups[rows], return_inverse=True)[1], QUICK if probes == "quick" else FULL
    options: dict[str, Any] = {"models": models, "confidence": confidence, "random_state": seed}
    return [r for view, Z in views.items() for r in run_probes(Z[rows], s, view=view, column=title, **options)]


def column_leakage(
    law: np.ndarray | None, bits: np.ndarray | None, groups: np.ndarray, title: str, names: Any, seed: int = 0
) -> Leakage:
    """Return what a code, or one draw of a random one, reveals about the groups (n,) of a column, numbers of names.

    `law` and `bits` are those of a `Subject`.
    """
    present, numbers, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(present) < 2:
        problem = f"All rows have the same group of {title!r}, {names[present[0]]!r}."
        raise InputError(problem, remedy="Pass rows of at least two groups.")
    each = lower = joint = None
    prior = counts / len(groups)
    if bits is not None:
        ones = np.stack([bits[numbers == group].mean(0) for group in range(len(prior))])  # (K, m)
        each = tuple(shown_information(np.stack([1 - ones, ones]).transpose(2, 1, 0), prior).tolist())
    if law is not None:
        lower, joint = _sandwich(law, numbers, prior, seed)
    rows = dict(zip((names[group] for group in present), counts.tolist(), strict=True))
    return Leakage(title, rows, share_entropy(prior), each, sum(each) if each else None, joint, lower)


def _sandwich(law: np.ndarray, groups: np.ndarray, prior: np.ndarray, seed: int) -> tuple[float, float]:
    """Return (lower, upper) around the population's information, as `information_sandwich` does, in bits."""
    hard = bool(np.isin(law, (0, 1)).all())
    if law.shape[1] > LISTED_BITS and not hard:
        import torch

        from fairbits.information import information_sandwich

        generator = torch.Generator().manual_seed(seed)
        found = information_sandwich(torch.from_numpy(law), torch.from_numpy(groups), generator=generator)
        return float(found[0]), float(found[1])
    rows, k = _torch_permutation(len(groups), seed), len(prior)
    second = np.zeros_like(groups)  # the rows of every group are dealt out to two halves in turn
    second[rows[groups[rows].argsort(kind="stable")][1::2]] = 1
    sums = group_sums(law, groups + k * second, 2 * k, Release(hard=hard))
    assert sums is not None  # all words are listed, or nothing is drawn
    upper = shown_information((sums.words[:k] + sums.words[k:]) / (prior[:, None] * len(groups)), prior)
    if not sums.people.all():
        return 0.0, float(upper)
    one, other = sums.shares[:k], sums.shares[k:]
    ends = [held_out_information(*halves, prior, len(groups)) for halves in ((one, other), (other, one))]
    return sum(ends) / 2, float(upper)


def _torch_permutation(n: int, seed: int) -> np.ndarray:
    """Return what `torch.randperm` draws from a seed, where torch need not be there: both draw as MT19937 does."""
    drawn = np.random.RandomState(seed & 0xFFFFFFFF).randint(2**32, size=n - 1, dtype=np.uint32)
    rows = list(range(n))
    for place, other in enumerate((np.arange(n - 1) + drawn % np.arange(n, 1, -1)).tolist()):
        rows[place], rows[other] = rows[other], rows[place]
    return np.array(rows)
