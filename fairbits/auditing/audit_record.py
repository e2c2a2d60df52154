"""The record an audit is, and how it reads."""

from dataclasses import asdict, dataclass
from typing import Any

from fairbits.auditing.probes import ProbeResult
from fairbits.certificate import Certificate


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
    """How well the groups of a column can be guessed from the release: what a probe reaches, and what nobody can."""

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
        certificate = None if self.certificate is None else self.certificate.to_dict()
        parts = {name: [asdict(item) for item in getattr(self, name)] for name in ("leakage", "probes", "adversaries")}
        return {**vars(self), **parts, "concerns": list(self.concerns), "certificate": certificate}

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
        if self.probes:
            lines.append(
                f"Probes that try to recover S ({self.confidence:.0%} intervals; 'permuted': 95% of the AUCs with "
                "permuted groups are below; 'shuffled': AUC after training on shuffled groups)"
            )
        for p in self.probes:
            lines.append(
                f"  {p.column:<12} {p.view:<10} {p.model:<10} AUC {p.auc:.4f} [{p.auc_low:.4f}, {p.auc_high:.4f}]  "
                f"permuted {p.permuted_auc_high:.4f}  shuffled {p.shuffled_auc:.4f}  p {p.p_value:.3f}  balanced "
                f"accuracy {p.balanced_accuracy:.4f} [{p.balanced_accuracy_low:.4f}, {p.balanced_accuracy_high:.4f}]"
            )
        for a in self.adversaries:
            found = f"No probe beats chance ({a.chance:.4f}) at guessing {a.column}"
            if a.reached > a.chance:
                found = f"The probe {a.by} guesses {a.column} with a balanced accuracy of at least {a.reached:.4f}"
            most = "nothing is certified" if a.at_most is None else f"nobody can exceed {a.at_most:.4f}"
            lines.append(f"{found}; {most} ({self.confidence:.0%} confidence each).")
        lines += [f"Not available, {name}: {reason}" for name, reason in self.unavailable.items()]
        return "\n".join([*lines, *(f"Warning: {text}" for text in self.concerns)])
