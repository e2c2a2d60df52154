"""Tables and sensitive columns as plain arrays."""

from fairbits.encoding.group_encoder import GroupEncoder
from fairbits.encoding.overlap import Overlap, sensitive_in_table
from fairbits.encoding.seen_rows import SeenRows, index_hashes, row_hashes, take_rows
from fairbits.encoding.sensitive import BinnedSensitiveFeaturesWarning, check_length, sensitive_columns
from fairbits.encoding.table_encoder import TableEncoder

__all__ = [
    "BinnedSensitiveFeaturesWarning",
    "GroupEncoder",
    "Overlap",
    "SeenRows",
    "TableEncoder",
    "check_length",
    "index_hashes",
    "row_hashes",
    "sensitive_columns",
    "sensitive_in_table",
    "take_rows",
]
