"""Rows are recognised when they come back, and only then."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from fairbits.datasets import load_adult, load_compas
from fairbits.encoding import SeenRows, TableEncoder, index_hashes, row_hashes


def seen(x, index=None):
    return SeenRows(row_hashes(x), index)


def test_equal_rows_have_equal_numbers_and_others_do_not():
    x = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)
    x[0], x[1] = (0.0, 1, 2), (-0.0, 1, 2)
    numbers = row_hashes(x)
    assert numbers[0] == numbers[1]
    assert len(np.unique(numbers)) == len(x) - 1
    np.testing.assert_array_equal(row_hashes(x[::-1]), numbers[::-1])
    assert not np.isin(row_hashes(x[2:, ::-1]), numbers).any()


def test_the_same_table_in_any_order_and_a_part_of_it_come_back():
    x = np.random.default_rng(0).normal(size=(500, 3))
    assert "same table" in seen(x).come_back(row_hashes(x[::-1]))
    assert "same order" in seen(x).come_back(row_hashes(x[:100]))
    assert "content" in seen(x).come_back(row_hashes(np.random.default_rng(1).permutation(x)[:100]))
    mixed = np.vstack([x[:50], np.random.default_rng(1).normal(size=(50, 3))])
    assert seen(x).come_back(row_hashes(mixed)) is not None


@pytest.mark.parametrize("load", [load_compas, load_adult])
@pytest.mark.parametrize("split", range(5))
def test_held_out_rows_of_tables_with_repeats_raise_no_alarm(load, split):
    data = load()
    x = pd.DataFrame(np.asarray(TableEncoder().fit_transform(data.X)))
    train, test = train_test_split(x, test_size=0.3, random_state=split)
    for a, b in ((train, test), (train.reset_index(drop=True), test.reset_index(drop=True))):
        known = seen(a.to_numpy(), index_hashes(a))
        assert known.come_back(row_hashes(b.to_numpy()), index_hashes(b)) is None
        assert known.come_back(row_hashes(b.to_numpy())) is None


def test_new_rows_of_a_table_of_two_contents_raise_no_alarm():
    x = (np.random.default_rng(0).random((2000, 1)) < 0.15).astype(float)
    assert seen(x[:1400]).come_back(row_hashes(x[1400:])) is None


def test_a_part_of_a_table_with_repeats_comes_back_by_its_index():
    x = pd.DataFrame(np.asarray(TableEncoder().fit_transform(load_compas().X)))
    train, _ = train_test_split(x, random_state=0)
    again = train.sample(300, random_state=0)
    known = seen(train.to_numpy(), index_hashes(train))
    assert "index" in known.come_back(row_hashes(again.to_numpy()), index_hashes(again))


def test_a_slice_of_a_table_with_repeats_comes_back_by_its_order():
    """As after a pipeline's encoder, which keeps no index."""
    x = np.asarray(TableEncoder().fit_transform(load_compas().X))
    train, test = train_test_split(x, random_state=0)
    assert "same order" in seen(train).come_back(row_hashes(train[100:400]))
    assert "same order" in seen(train).come_back(row_hashes(train[:-1]))
    assert seen(train).come_back(row_hashes(test[:300])) is None


def test_a_pickle_tells_nothing_of_single_rows():
    x = np.random.default_rng(0).normal(size=(500, 3))
    known = pickle.loads(pickle.dumps(seen(x, np.arange(500, dtype=np.uint64))))
    assert "same table" in known.come_back(row_hashes(x))
    assert known.come_back(row_hashes(x[:100])) is None
    assert known.hashes is None
    assert known.index is None
