"""What a representation does for the label and reveals about the sensitive columns."""

from fairbits.auditing.auditor import Adversary, Audit, Leakage, audit
from fairbits.auditing.probes import ProbeResult, run_probes

__all__ = ["Adversary", "Audit", "Leakage", "ProbeResult", "audit", "run_probes"]
