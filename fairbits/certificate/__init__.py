"""What held-out rows prove about everyone who receives a code, and the release of codes."""

from fairbits.certificate.certificate_monitor import CertificateMonitor as CertificateMonitor
from fairbits.certificate.certificate_record import Certificate as Certificate
from fairbits.certificate.certificate_record import GroupBounds as GroupBounds
from fairbits.certificate.certificate_state import CertificateState as CertificateState
from fairbits.certificate.certification import SmallGroupWarning as SmallGroupWarning
from fairbits.certificate.certification import TrainingRowsWarning as TrainingRowsWarning
from fairbits.certificate.certification import certify as certify
from fairbits.certificate.decision_rates import group_rates as group_rates
from fairbits.certificate.decision_rates import selection_ratio as selection_ratio
from fairbits.certificate.keyed_draws import DrawKey as DrawKey
from fairbits.certificate.ledger import Ledger as Ledger
from fairbits.certificate.ledger import LostLedgerError as LostLedgerError
from fairbits.certificate.ledger import OtherPeopleError as OtherPeopleError
from fairbits.certificate.lower_bounds import ProvedGap as ProvedGap
from fairbits.certificate.lower_bounds import proved_gap as proved_gap
from fairbits.certificate.released_code import Release as Release
from fairbits.certificate.releasing import AlreadyReleasedError as AlreadyReleasedError
from fairbits.certificate.releasing import OtherReleaseError as OtherReleaseError
from fairbits.certificate.releasing import Released as Released
from fairbits.certificate.releasing import release as release
