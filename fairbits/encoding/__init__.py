"""Tables and sensitive columns as plain arrays."""

from fairbits.encoding.columns import ColumnsMismatchError as ColumnsMismatchError
from fairbits.encoding.columns import take_rows as take_rows
from fairbits.encoding.group_encoder import BinnedSensitiveFeaturesWarning as BinnedSensitiveFeaturesWarning
from fairbits.encoding.group_encoder import GroupEncoder as GroupEncoder
from fairbits.encoding.group_encoder import SmallGroupError as SmallGroupError
from fairbits.encoding.group_encoder import UnseenGroupError as UnseenGroupError
from fairbits.encoding.group_encoder import sensitive_columns as sensitive_columns
from fairbits.encoding.recognition import SeenRows as SeenRows
from fairbits.encoding.recognition import index_hashes as index_hashes
from fairbits.encoding.recognition import row_hashes as row_hashes
from fairbits.encoding.recognition import sensitive_in_table as sensitive_in_table
from fairbits.encoding.table_encoder import NothingToEncodeError as NothingToEncodeError
from fairbits.encoding.table_encoder import TableEncoder as TableEncoder
