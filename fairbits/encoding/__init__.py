"""Tables and sensitive columns as plain arrays."""

from fairbits.encoding.columns import ColumnsMismatchError, take_rows
from fairbits.encoding.group_encoder import (
    BinnedSensitiveFeaturesWarning,
    GroupEncoder,
    SmallGroupError,
    UnseenGroupError,
    sensitive_columns,
)
from fairbits.encoding.recognition import Overlap, SeenRows, index_hashes, row_hashes, sensitive_in_table
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
    "index_hashes",
    "row_hashes",
    "sensitive_columns",
    "sensitive_in_table",
    "take_rows",
]
