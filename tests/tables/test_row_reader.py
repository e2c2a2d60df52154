"""New rows are read as those of the fit were."""

import numpy as np
import pandas as pd

from fairbits.encoding import TableEncoder
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.row_reader import RowReader
from fairbits.tables.table_file import TableFile


def test_typed_columns_of_a_parquet_file_are_read_as_in_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "waited": pd.to_timedelta(rng.integers(0, 10**6, 50), "s"),
            "seen": pd.date_range("2024-01-01", periods=50, freq="h", tz="Europe/Berlin"),
            "age": pd.array([None, *range(49)], dtype="Int64"),
            "member": pd.array([None, *rng.integers(2, size=49).astype(bool)], dtype="boolean"),
            "size": pd.Categorical(rng.choice(["S", "M"], 50), ["S", "M", "L"], ordered=True),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = TableFile(tmp_path / "t.parquet")
    encoder = TableEncoder().fit(table.read().frame)
    model = FittedModel(tmp_path, encoder, method=None, record=None, limit=None)
    expected = encoder.transform(table.read().frame)
    np.testing.assert_array_equal(RowReader(model, table).encoded(), expected)
