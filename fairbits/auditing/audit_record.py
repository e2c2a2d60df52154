"""The record an audit is, and how it reads."""

from dataclasses import asdict, dataclass
from typing import Any

from fairbits.auditing.probes import ProbeResult
from fairbits.certificate import Certificate


@dataclass(frozen=True)
class Leakage:
    """What the released representation tells about one sensitive column, in bits."""

    column: str
    rows: dict[str, int]  # per group
    entropy: float  # H(S), the most that can be told
    each_bit: tuple[float, ...] | None  # I(T_i;S)
    total: float | None  # their sum: neither above nor below the joint information in general
    joint: float | None  # I(T;S) of these rows; above the population's in expectation
    lower: float | None  # below the population's in expectation


@dataclass(frozen=True)
class Adversary:
    """How well the groups of a column can be told apart from the release: what is reached and what cannot be passed."""

    column: str
    reached: float  # the best probe of the release has at least this balanced accuracy, for all its probes together
    by: str  # the probe
    at_most: float | None  # certified for everyone
    chance: float  # of guessing


@dataclass(frozen=True)
class Audit:
    """What a representation does, what it tells about the sensitive columns, and what is not known about it."""

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
        certificate = None if self.certificate is None else self.certificate.to_dict()
        parts = {name: [asdict(item) for item in getattr(self, name)] for name in ("leakage", "probes", "adversaries")}
        return {**vars(self), **parts, "concerns": list(self.concerns), "certificate": certificate}

    def __str__(self) -> str:
        parts = [
            f"Audit of {self.subject} on {self.rows} rows",
            *([_task_text(self.task, self.intervals)] if self.task else []),
            *(_leakage_text(leakage) for leakage in self.leakage),
            *([str(self.certificate)] if self.certificate else []),
            _probe_table(self.probes, self.confidence),
            *(_adversary_text(adversary, self.confidence) for adversary in self.adversaries),
            *(f"Not available, {name}: {reason}" for name, reason in self.unavailable.items()),
            *(f"Concern: {text}" for text in self.concerns),
        ]
        return "\n".join(part for part in parts if part)


def _task_text(task: dict[str, float], intervals: dict[str, tuple[float, float]]) -> str:
    shown = {name: f" [{low:.4f}, {high:.4f}]" for name, (low, high) in intervals.items()}
    return "Task: " + ", ".join(f"{name} {value:.4f}{shown.get(name, '')}" for name, value in task.items())


def _leakage_text(leakage: Leakage) -> str:
    groups = ", ".join(f"{name} {n}" for name, n in leakage.rows.items())
    text = f"Leakage about {leakage.column} (H(S) = {leakage.entropy:.4f} bits; rows: {groups})"
    if leakage.joint is not None:
        text += f"\n  the whole code: {leakage.joint:.4f} bits on these rows, {leakage.lower:.4f} on held-out halves"
    if leakage.each_bit is not None:
        bits = " ".join(f"{value:.4f}" for value in leakage.each_bit)
        text += f"\n  each bit alone: {bits}; sum {leakage.total:.4f}, which bounds nothing"
    return text


def _probe_table(probes: tuple[ProbeResult, ...], confidence: float) -> str:
    if not probes:
        return ""
    lines = [
        f"Probes that try to recover S (intervals at {confidence:g}; AUC with permuted groups up to, with training "
        "groups shuffled, p-value; balanced accuracy)"
    ]
    for p in probes:
        lines.append(
            f"  {p.column:<12} {p.view:<10} {p.model:<10} AUC {p.auc:.4f} [{p.auc_low:.4f}, {p.auc_high:.4f}]  "
            f"permuted {p.permuted_auc_high:.4f}  shuffled {p.shuffled_auc:.4f}  p {p.p_value:.3f}  balanced accuracy "
            f"{p.balanced_accuracy:.4f} [{p.balanced_accuracy_low:.4f}, {p.balanced_accuracy_high:.4f}]"
        )
    return "\n".join(lines)


def _adversary_text(adversary: Adversary, confidence: float) -> str:
    most = "nothing is certified" if adversary.at_most is None else f"nobody passes {adversary.at_most:.4f}"
    if adversary.reached > adversary.chance:
        found = f"Who sees the release tells {adversary.column} with a balanced accuracy of at least "
        found += f"{adversary.reached:.4f} ({adversary.by})"
    else:
        found = f"No probe surely tells {adversary.column} better than a guess ({adversary.chance:.4f})"
    return f"{found}; {most} (confidence {confidence:g} each)."
