"""sensitive_in_table: finds S under any name or coding, and stays silent otherwise."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits.encoding import sensitive_in_table

N = 5_000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def found(X, sensitive_features):
    """The columns of X that repeat a sensitive one, and how."""
    overlap = re.compile(r"column '(.*)' (.*) the sensitive column '.*'")
    return [overlap.fullmatch(str(found)).groups() for found in sensitive_in_table(X, sensitive_features)]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_same_name_and_recoded(rng, frame):
    sex = rng.choice(["F", "M"], N)
    other = np.where(rng.random(N) < 0.01, "F", sex)
    X = frame({"age": rng.normal(size=N), "sex": other, "g": (sex == "M") * 1.0, "h": sex == "F"})
    assert found(X, {"sex": sex}) == [
        ("sex", "has the name of"),
        ("g", "is one-to-one with"),
        ("h", "is one-to-one with"),
    ]
    assert str(sensitive_in_table(X, {"sex": sex})[0]) == "column 'sex' has the name of the sensitive column 'sex'"


def test_numpy_columns_are_called_by_position(rng):
    s = rng.integers(0, 3, N)
    X = np.column_stack([rng.normal(size=N), s * 10, rng.integers(0, 3, N)])
    assert found(X, s) == found(X.tolist(), s) == [("1", "is one-to-one with")]


def test_one_hot_columns_mark_a_value(rng):
    race = rng.choice(["A", "B", "C"], N)
    X = np.column_stack([race == "A", race != "B", rng.random(N) < 0.5]) * 1.0
    assert found(X, race) == [("0", "marks one value of"), ("1", "marks one value of")]


def test_one_row_in_disagreement_is_enough_to_stay_silent(rng):
    s = rng.integers(0, 2, N)
    x = s.copy()
    x[2_501] = 1 - x[2_501]  # not among the rows looked at first
    assert found(x[:, None], s) == []
    assert found(s[:, None], s) == [("0", "is one-to-one with")]


def test_a_rare_group_is_found(rng):
    s = np.zeros(N, dtype=int)
    s[3_334] = 1  # not among the rows looked at first
    assert found(np.column_stack([s, np.zeros(N)]), s) == [("0", "is one-to-one with")]


def test_constants_are_never_flagged(rng):
    X = pd.DataFrame({"sex": ["F"] * N, "a": 0, "b": np.nan})
    assert found(X, {"sex": rng.choice(["F", "M"], N)}) == []
    assert found(X, {"other": ["F"] * N}) == []


def test_finer_columns_are_not_one_to_one(rng):
    fine = rng.integers(0, 4, N)
    assert found(fine[:, None], fine // 2) == []
    assert found((fine // 2)[:, None], fine) == []  # two of four values on each side: no single one is marked


def test_missing_is_a_value(rng):
    s = rng.choice(["F", "M"], N)
    assert found(np.where(s == "F", np.nan, 1.0)[:, None], s) == [("0", "is one-to-one with")]
    assert found(np.where(rng.random(N) < 0.5, np.nan, 1.0)[:, None], s) == []


def test_numbers_that_hardly_repeat(rng):
    s = rng.normal(size=N)
    X = np.column_stack([rng.normal(size=N), np.exp(s), -s, np.arange(N), s + 0.01 * rng.normal(size=N)])
    assert found(X, s) == [("1", "is one-to-one with"), ("2", "is one-to-one with")]
    assert found(X[:5], s[:5]) == []


def test_identifiers_are_not_confused():
    names = [f"person {i}" for i in range(N)]
    assert found(pd.DataFrame({"id": names[::-1], "row": range(N)}), names) == []


def test_unnamed_features_match_no_name(rng):
    s = rng.integers(0, 2, N)
    assert found(pd.DataFrame({"sensitive_features": rng.normal(size=N)}), s) == []


def test_lengths():
    with pytest.raises(ValueError, match="has 2 values for 3 rows"):
        sensitive_in_table(np.zeros((3, 1)), [0, 1])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=8, max_size=40))
def test_agrees_with_the_definition(rows):
    x, s = np.array(rows).T
    n_pairs, n_x, n_s = len(set(rows)), len(set(x)), len(set(s))
    one_to_one = n_pairs == n_x == n_s > 1
    assert ("0", "is one-to-one with") in found(x[:, None], s) if one_to_one else True
    assert one_to_one or ("0", "is one-to-one with") not in found(x[:, None], s)
