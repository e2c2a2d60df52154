"""What held-out rows prove about every receiver of a code."""

from fairbits.certificate.certificate_record import Certificate, GroupBounds
from fairbits.certificate.certification import (
    SmallGroupWarning,
    TrainingRowsWarning,
    certify,
    certify_groups,
    check_fresh,
    column_titles,
    fitted_code,
)
from fairbits.certificate.contradiction import ProvedGap, proved_gap
from fairbits.certificate.release import Release, binary_digits, system_uniforms

__all__ = [
    "Certificate",
    "GroupBounds",
    "ProvedGap",
    "Release",
    "SmallGroupWarning",
    "TrainingRowsWarning",
    "binary_digits",
    "certify",
    "certify_groups",
    "check_fresh",
    "column_titles",
    "fitted_code",
    "proved_gap",
    "system_uniforms",
]
