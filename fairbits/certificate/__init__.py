"""What held-out rows prove about everyone who receives a code, and the release of codes."""

from fairbits.certificate.certification import Certificate, GroupBounds, SmallGroupWarning, TrainingRowsWarning, certify
from fairbits.certificate.confidence_bounds import ProvedGap, proved_gap
from fairbits.certificate.ledger import Ledger, OtherPeopleError
from fairbits.certificate.released_code import Release
from fairbits.certificate.releasing import AlreadyReleasedError, OtherReleaseError, Released, release

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
    "certify",
    "proved_gap",
    "release",
]
