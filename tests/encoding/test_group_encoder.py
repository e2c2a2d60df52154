"""GroupEncoder: groups do not depend on container or value names; every refusal explains itself."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits.encoding import (
    BinnedSensitiveFeaturesWarning,
    ColumnsMismatchError,
    GroupEncoder,
    SmallGroupError,
    UnseenGroupError,
)
from fairbits.modelfile.model_content import GroupsState, describe, plain
from fairbits.modelfile.save_and_load import SAVED

SEX = ["F", "M", "F", "M", "F"]
RACE = ["B", "B", "W", "W", "W"]


def small(**parameters):
    return GroupEncoder(min_group_size=1, **parameters)


def coded(sensitive_features, **parameters):
    encoder = small(**parameters)
    return encoder.fit(sensitive_features).transform(sensitive_features)


@pytest.mark.parametrize(
    "values",
    [
        SEX,
        tuple(SEX),
        np.array(SEX),
        np.array(SEX)[:, None],
        pd.Series(SEX),
        pl.Series(SEX),
        pa.chunked_array([SEX]),
        pa.array(SEX),
        pd.Categorical(SEX),
    ],
)
def test_one_unnamed_column(values):
    encoder = small().fit(values)
    assert encoder.columns_ == ["sensitive_features"]
    assert encoder.names_ == [["F", "M"]]
    assert encoder.sizes_ == [[3, 2]]
    codes = encoder.transform(values)
    assert codes.dtype == np.int64
    assert codes.tolist() == [[0], [1], [0], [1], [0]]


@pytest.mark.parametrize(
    "table",
    [
        {"sex": SEX, "race": RACE},
        pd.DataFrame({"sex": SEX, "race": RACE}),
        pd.DataFrame({"sex": SEX, "race": RACE}, index=[9, 8, 7, 6, 5]).astype("category"),
        pl.DataFrame({"sex": SEX, "race": RACE}),
        pa.table({"sex": SEX, "race": pa.array(RACE).dictionary_encode()}),
        pl.DataFrame({"sex": SEX, "race": RACE}).cast(pl.Categorical),
    ],
)
def test_intersection_and_each(table):
    crossed, each = small().fit(table), small(groups="each").fit(table)
    assert crossed.names_ == [["sex=F, race=B", "sex=F, race=W", "sex=M, race=B", "sex=M, race=W"]]
    assert crossed.transform(table).tolist() == [[0], [2], [1], [3], [1]]
    assert each.names_ == [["F", "M"], ["B", "W"]]
    assert each.columns_ == ["sex", "race"]
    assert each.transform(table).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [0, 1]]


def test_unnamed_columns_of_an_array():
    encoder = small().fit(np.array([SEX, RACE]).T)
    assert encoder.columns_ == ["s0", "s1"]
    assert encoder.names_[0][0] == "s0=F, s1=B"


def test_crossings_that_do_not_occur_are_no_groups():
    encoder = small().fit({"a": [0, 0, 1], "b": [0, 1, 1]})
    assert encoder.names_ == [["a=0, b=0", "a=0, b=1", "a=1, b=1"]]
    with pytest.raises(ValueError, match=r"roup 'a=1, b=0' .* was unseen in fit \(2 rows.*groups='each'") as caught:
        encoder.transform({"a": [1, 1, 0], "b": [0, 0, 0]})
    assert (caught.value.column, caught.value.group, caught.value.rows) == ("a x b", "a=1, b=0", 2)


def test_values_of_other_types():
    assert small().fit([10, 9, 10]).names_ == [["9", "10"]]  # by number, not by text
    assert small().fit([True, False]).names_ == [["False", "True"]]
    assert small().fit(np.array([1, "a", True, 1.0], dtype=object)).names_ == [["1", "True", "a"]]
    assert small().fit(np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")).sizes_ == [[1, 1]]
    assert small().fit([0, 1]).transform([1.0, 0.0]).tolist() == [[1], [0]]


def test_columns_are_matched_by_name_or_by_position():
    encoder = small(groups="each").fit({"sex": SEX, "race": RACE})
    expected = encoder.transform({"sex": SEX, "race": RACE})
    np.testing.assert_array_equal(encoder.transform({"race": RACE, "sex": SEX}), expected)
    np.testing.assert_array_equal(encoder.transform(np.array([SEX, RACE]).T), expected)
    with pytest.raises(ValueError, match=r"columns are \['sex', 'age'\]; fit had \['sex', 'race'\]") as caught:
        encoder.transform({"sex": SEX, "age": RACE})
    assert isinstance(caught.value, ColumnsMismatchError)
    assert (caught.value.found, caught.value.fitted) == (["sex", "age"], ["sex", "race"])


def test_numbers_are_binned_with_a_warning():
    age = pd.Series(np.arange(17, 97), name="age")
    with pytest.warns(
        BinnedSensitiveFeaturesWarning, match=r"'age' has 80 .*cut .* under 37, 37 to under 57, "
    ) as caught:
        encoder = GroupEncoder().fit(age)
    said = caught[0].message
    assert (said.column, said.distinct, said.labels[0]) == ("age", 80, "under 37")
    assert encoder.names_ == [["age under 37", "age 37 to under 57", "age 57 to under 77", "age 77 and over"]]
    assert encoder.levels_[0].edges == [37, 57, 77]
    assert encoder.sizes_ == [[20, 20, 20, 20]]
    assert encoder.transform([36, 37, 5, 200]).tolist() == [
        [0],
        [1],
        [0],
        [3],
    ]  # the ends take what is beyond


def test_ten_values_are_not_binned():
    assert len(small().fit(np.arange(10)).names_[0]) == 10


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0] * 90 + list(range(1, 21)), ["under 1", "1 and over"]),
        (list(range(20)) + [20] * 90, ["under 20", "20 and over"]),
        (list(range(10)) + [10] * 90 + list(range(11, 21)), ["under 10", "10 and over"]),
    ],
)
def test_heavy_ties_still_give_two_groups(values, names):
    assert small().fit(values).names_ == [[f"sensitive_features {name}" for name in names]]


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
def test_close_edges_keep_distinct_names():
    names = small().fit(1e6 + np.arange(40) / 1000).names_[0]
    assert len(set(names)) == 4


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-5, 40), min_size=12, max_size=80), st.integers(2, 6))
def test_bins_partition_the_numbers_in_order(values, n_bins):
    x = np.array(values)
    if len(np.unique(x)) <= 10:
        return
    encoder = small(n_bins=n_bins).fit(x)
    codes = encoder.transform(x)[:, 0]
    assert 2 <= len(encoder.names_[0]) <= n_bins
    assert min(encoder.sizes_[0]) > 0
    assert (np.diff(codes[np.argsort(x, kind="stable")]) >= 0).all()
    assert all(len(np.unique(codes[x == value])) == 1 for value in x)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=40),
    st.permutations("wxyz"),
)
def test_renaming_values_keeps_the_partition(rows, letters):
    a, b = np.array(rows).T
    if len(set(rows)) < 2:
        return
    renamed = {"a": [letters[value] for value in a], "b": b.astype(bool) if b.max() < 2 else -b}
    one, other = coded({"a": a, "b": b})[:, 0], coded(renamed)[:, 0]
    np.testing.assert_array_equal(one[:, None] == one, other[:, None] == other)


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
@pytest.mark.parametrize("groups", ["intersection", "each"])
def test_round_trip_through_json(groups):
    s = {"sex": SEX * 8, "age": np.random.default_rng(0).normal(size=40)}
    encoder = small(groups=groups, n_bins=3).fit(s)
    written = plain(describe(encoder, SAVED))
    again = GroupsState.model_validate_json(json.dumps(written, allow_nan=False)).build(None)
    np.testing.assert_array_equal(again.transform(s), encoder.transform(s))
    assert (again.names_, again.levels_, again.columns_) == (encoder.names_, encoder.levels_, encoder.columns_)
    assert plain(describe(again, SAVED)) == written


@pytest.mark.parametrize(
    "values",
    [
        ["F", None, "M", None],
        pd.Series(["F", np.nan, "M", pd.NA]),
        pd.to_datetime(["2020-01-01", None, "2021-01-01", None]),
        pl.Series([True, None, False, None]),
        pa.array(["F", None, "M", None]).dictionary_encode(),
        np.array([0.0, np.nan, 1.0, np.inf]),
    ],
)
def test_missing_values(values):
    with pytest.raises(ValueError, match=r"'sensitive_features' is missing .* in 2 of 4 rows. Drop .* 'unknown'"):
        small().fit(values)
    with pytest.raises(ValueError, match="in 1 of 2 rows"):
        small().fit([0, 1]).transform([0, np.nan])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["F"] * 20, "'sensitive_features' has only one group, 'F'. Pass rows of two or more"),
        (
            ["F"] * 20 + ["M"] * 3,
            "roup 'M' of 'sensitive_features' has 3 rows; at least 10 .*Merge categories, or lower min_group_size=10",
        ),
        (
            [f"v{i}" for i in range(51)],
            r"51 distinct values \(v0, v1, v10, ...\), more than 50 groups. Merge",
        ),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\). Pass \(n,\)"),
        ({}, "one or more, each name once"),
        (
            pd.DataFrame([[0, 1]], columns=["a", "a"]),
            "More than one column is named 'a'. Rename",
        ),
        ({"a": [0, 1], "b": [0]}, "'b' has 1 values for 2 rows. Pass the values themselves"),
        ([], "sensitive columns have 0 rows"),
    ],
)
def test_refused(values, message):
    with pytest.raises(ValueError, match=message):
        GroupEncoder().fit(values)


def test_small_crossing_offers_each():
    s = {"sex": ["F"] * 20 + ["M"] * 20, "race": ["B"] * 12 + ["W"] * 27 + ["B"]}
    with pytest.raises(ValueError, match=r"'sex=F, race=W' of 'sex x race' has 8 rows.*groups='each'") as caught:
        GroupEncoder(min_group_size=9).fit({**s, "race": ["B"] * 12 + ["W"] * 18 + ["B"] * 10})
    small = caught.value
    assert isinstance(small, SmallGroupError)
    assert (small.group, small.column, small.rows, small.least) == ("sex=F, race=W", "sex x race", 8, 9)
    assert GroupEncoder(groups="each").fit(s).sizes_ == [[20, 20], [13, 27]]


def test_each_column_needs_two_groups():
    with pytest.raises(ValueError, match="'race' has only one group, 'B'"):
        small(groups="each").fit({"sex": ["F", "M"], "race": ["B", "B"]})


@pytest.mark.parametrize("values", [None, "sex"])
def test_not_a_column(values):
    with pytest.raises(TypeError, match=r"is not a column\. Pass one value per row"):
        GroupEncoder().fit(values)


def test_lengths_are_compared_with_x():
    encoder = small().fit(["F", "M"], n_rows=2)
    with pytest.raises(ValueError, match="'sensitive_features' has 2 values for 3 rows"):
        small().fit(["sex", "race"], n_rows=3)
    with pytest.raises(ValueError, match="has 2 values for 3 rows"):
        encoder.transform(["F", "M"], n_rows=3)


def test_unseen_values():
    with pytest.raises(ValueError, match=r"'X' .* unseen in fit \(2 rows.*Known are \['F', 'M'\]: merge") as caught:
        small().fit(["F", "M"]).transform(["F", "X", "Y"])
    assert isinstance(caught.value, UnseenGroupError)
    assert (caught.value.column, caught.value.group, caught.value.rows) == ("sensitive_features", "X", 2)


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
def test_text_where_numbers_were_binned():
    with pytest.raises(ValueError, match="held numbers in fit: could not convert string to float: 'old'"):
        small().fit(np.arange(20)).transform(["old"])


def test_not_fitted():
    with pytest.raises(ValueError, match="call fit first"):
        GroupEncoder().transform(["F"])


@pytest.mark.parametrize(
    "parameters",
    [{"groups": "both"}, {"n_bins": 1}, {"max_values": 1}, {"min_group_size": 0}, {"n_bins": 2.5}],
)
def test_bad_parameters(parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(ValueError, match=f"{name}={value!r} must be"):
        GroupEncoder(**parameters).fit(SEX)
