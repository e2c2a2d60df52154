"""Rows are recognised when they come back, and only then."""

import base64
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from fairbits.datasets import load_adult, load_compas
from fairbits.encoding import SeenRows, TableEncoder, index_hashes, recognition, row_hashes
from fairbits.encoding.recognition import FALSE_ALARM, RowSketch, _bit_places


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


def hashes(n, seed=0):
    return np.random.default_rng(seed).integers(2**64, size=n, dtype=np.uint64)


def bit_set(sketch, rows):
    """Return which rows find their bit set, one by one as somebody would who looks for a person."""
    array = np.unpackbits(np.frombuffer(base64.b64decode(sketch.bits), np.uint8), count=sketch.size)
    return array[_bit_places(rows, sketch.salt, sketch.size)].astype(bool)


def test_a_sketch_is_deniable_for_every_row():
    """The odds that a row was in the table change by a factor of at most 2, whatever the sketch says of it."""
    own, new = hashes(20_000), hashes(20_000, 1)
    sketch = RowSketch.of(own)
    member, stranger = bit_set(sketch, own).mean(), bit_set(sketch, new).mean()
    assert member == pytest.approx(0.75, abs=0.015)
    assert stranger == pytest.approx(0.5, abs=0.015)
    assert sketch.others == 10_000
    assert sketch.found / sketch.others == pytest.approx(stranger, abs=0.015)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_a_sketch_recognises_no_single_row_nor_a_few(n):
    own = hashes(5_000)
    assert not any(RowSketch.of(own).recognises(own[i : i + n]) for i in range(0, 100, n))


def test_a_sketch_recognises_a_table_with_many_of_its_rows():
    own = hashes(5_000)
    sketch = RowSketch.of(own)
    assert sketch.recognises(own[:500])
    assert sketch.recognises(np.concatenate([own[:1500], hashes(1500, 1)]))
    assert not sketch.recognises(hashes(3_000, 2))
    assert RowSketch.of(own[::-1]) == sketch


def test_false_alarms_of_a_sketch_are_as_rare_as_stated(monkeypatch):
    """At one in a hundred, which a test can count; new rows are of the same population, whose content repeats."""
    monkeypatch.setattr(recognition, "FALSE_ALARM", 0.01)
    rng, contents, alarms = np.random.default_rng(0), hashes(3_000), 0
    chance = rng.dirichlet(np.full(3_000, 0.2))
    for _ in range(200):
        own, new = rng.choice(contents, (2, 400), p=chance)
        alarms += RowSketch.of(own).recognises(new)
    assert alarms <= 8  # exceeded once in a thousand if the chance is 0.01
    assert FALSE_ALARM == 1e-6


def test_a_new_row_that_is_repeated_is_no_table_of_the_fit():
    sketch, new = RowSketch.of(hashes(2_000)), hashes(200, 1)
    lucky = new[bit_set(sketch, new)][0]
    assert not sketch.recognises(np.repeat(lucky, 1_000))


@pytest.mark.parametrize("load", [load_compas, load_adult])
def test_a_sketch_takes_held_out_rows_for_new_ones(load):
    x = row_hashes(np.asarray(TableEncoder().fit_transform(load().X)))
    train, test = train_test_split(x, test_size=0.3, random_state=0)
    assert not RowSketch.of(train).recognises(test)
