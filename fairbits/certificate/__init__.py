"""What held-out rows prove about every receiver of a code."""

from fairbits.certificate.certify import SmallGroupWarning, TrainingRowsWarning, certify, fitted_code
from fairbits.certificate.record import Certificate, GroupBounds
from fairbits.certificate.release import Release

__all__ = [
    "Certificate",
    "GroupBounds",
    "Release",
    "SmallGroupWarning",
    "TrainingRowsWarning",
    "certify",
    "fitted_code",
]
