"""Tables and sensitive columns as plain arrays."""

from fairbits.encoding.columns import ColumnsMismatchError, take_rows
from fairbits.encoding.group_encoder import GroupEncoder, SmallGroupError
from fairbits.encoding.recognition import Overlap, SeenRows, index_hashes, row_hashes, sensitive_in_table
from fairbits.encoding.sensitive import (
    BinnedSensitiveFeaturesWarning,
    UnseenGroupError,
    check_length,
    sensitive_columns,
)
from fairbits.encoding.table_encoder import NothingToEncodeError, TableEncoder

__all__ = [
    "BinnedSensitiveFeaturesWarning",
    "ColumnsMismatchError",
    "GroupEncoder",
    "NothingToEncodeError",
    "Overlap",
    "SeenRows",
    "SmallGroupError",
    "TableEncoder",
    "UnseenGroupError",
    "check_length",
    "index_hashes",
    "row_hashes",
    "sensitive_columns",
    "sensitive_in_table",
    "take_rows",
]
