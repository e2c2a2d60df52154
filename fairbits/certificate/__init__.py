"""What held-out rows prove about everyone who receives a code, and the release of codes."""

from fairbits.certificate.certificate_record import Certificate, GroupBounds
from fairbits.certificate.certification import (
    SmallGroupWarning,
    TrainingRowsWarning,
    certify,
    certify_groups,
    check_fresh,
    column_titles,
)
from fairbits.certificate.contradiction import ProvedGap, proved_gap
from fairbits.certificate.ledger import Ledger, OtherPeopleError
from fairbits.certificate.releasing import (
    AlreadyReleasedError,
    OtherReleaseError,
    Release,
    Released,
    binary_digits,
    fitted_code,
    release,
    system_uniforms,
)

__all__ = [
    "AlreadyReleasedError",
    "Certificate",
    "GroupBounds",
    "Ledger",
    "OtherPeopleError",
    "OtherReleaseError",
    "ProvedGap",
    "Release",
    "Released",
    "SmallGroupWarning",
    "TrainingRowsWarning",
    "binary_digits",
    "certify",
    "certify_groups",
    "check_fresh",
    "column_titles",
    "fitted_code",
    "proved_gap",
    "release",
    "system_uniforms",
]
