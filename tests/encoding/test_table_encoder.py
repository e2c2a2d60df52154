"""TableEncoder: containers agree, nothing non-finite comes out, every complaint names its column."""

import json
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fairbits.encoding import ColumnsMismatchError, NothingToEncodeError, TableEncoder
from fairbits.modelfile.model_content import TableState, describe, plain
from fairbits.modelfile.save_and_load import SAVED

COLUMNS = {
    "age": [20, 30, 40, 30],
    "income": [1.5, None, 3.0, 2.0],
    "sex": ["F", "M", None, "F"],
    "member": [True, False, True, True],
    "since": [date(2020, 1, 1), date(2021, 1, 1), None, date(2020, 6, 1)],
}
NAMES = [
    *["age", "income", "income (missing)", "sex=F", "sex=M", "sex=(missing)"],
    *["member=False", "member=True", "since", "since (missing)"],
]


def pandas_table():
    return pd.DataFrame(COLUMNS)


def numpy_table():
    return np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)


def written(encoder):
    """What a model file says of an encoder."""
    return json.dumps(plain(describe(encoder, SAVED)), allow_nan=False)


def encoded(table, **parameters):
    return TableEncoder(**parameters).fit_transform(table)


def test_scikit_learn_contract():
    statuses = [check["status"] for check in check_estimator(TableEncoder(), on_skip=None)]
    assert statuses.count("passed") > 30
    assert set(statuses) <= {"passed", "skipped"}


def test_names_and_values():
    encoder = TableEncoder(dtype=np.float64)
    out = pd.DataFrame(encoder.fit_transform(pandas_table()), columns=encoder.get_feature_names_out())
    assert out.columns.tolist() == NAMES
    np.testing.assert_allclose(out["age"], StandardScaler().fit_transform([[20], [30], [40], [30]])[:, 0])
    assert out["income"][1] == 0  # the mean
    assert out["income (missing)"].tolist() == out["sex=M"].tolist() == [0, 1, 0, 0]
    assert out["sex=(missing)"].tolist() == out["since (missing)"].tolist() == [0, 0, 1, 0]
    assert out["since"][1] == out["since"].max()


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).with_columns(pl.col("sex").cast(pl.Categorical)),
        pa.table(COLUMNS),
        pa.table({**COLUMNS, "sex": pa.array(COLUMNS["sex"]).dictionary_encode()}),
        pandas_table().astype({"sex": "category", "member": "boolean", "income": "Float64", "age": "Int64"}),
        pandas_table().assign(since=lambda t: pd.to_datetime(t["since"]).dt.tz_localize("UTC")),
        pandas_table().convert_dtypes(dtype_backend="pyarrow"),
        numpy_table(),
        numpy_table().tolist(),
    ],
    ids=[
        *("polars", "polars categorical", "pyarrow", "pyarrow categorical"),
        *("pandas nullable", "dates with zone", "arrow in pandas", "numpy", "list"),
    ],
)
def test_containers_agree(table):
    np.testing.assert_array_equal(encoded(table), encoded(pandas_table()))


def test_numpy_columns_are_called_by_position():
    names = TableEncoder().fit(numpy_table()).get_feature_names_out()
    assert names[:4].tolist() == ["x0", "x1", "x1 (missing)", "x2=F"]


def test_lists_keep_numbers_beside_text():
    assert TableEncoder().fit([[1, "a"], [2, "b"]]).get_feature_names_out().tolist() == ["x0", "x1=a", "x1=b"]


@pytest.mark.parametrize("table", [pandas_table(), pl.DataFrame(COLUMNS), pa.table(COLUMNS), numpy_table()])
def test_round_trip_through_json(table):
    encoder = TableEncoder(impute="median").fit(table)
    again = TableState.model_validate_json(written(encoder)).build(None)
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert again.describe() == encoder.describe()
    assert again.get_params() == encoder.get_params()
    assert written(again) == written(encoder)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(container):
    out = TableEncoder().set_output(transform=container).fit_transform(pandas_table())
    assert list(out.columns) == NAMES


def test_in_a_pipeline():
    model = make_pipeline(TableEncoder(), LogisticRegression()).fit(pandas_table(), [0, 1, 0, 1])
    assert model.predict(pandas_table()).shape == (4,)


def test_unseen_and_newly_missing_are_zeros():
    encoder = TableEncoder().fit(pd.DataFrame({"job": ["a", "b", "a"]}))
    out = encoder.transform(pd.DataFrame({"job": ["c", None, "b"]}))
    assert out.tolist() == [[0, 0], [0, 0], [0, 1]]


def test_rare_categories_are_merged_and_unseen_join_them():
    jobs = pd.DataFrame({"job": ["z"] * 5 + ["y"] * 4 + ["b", "a", "c"]})
    encoder = TableEncoder(max_categories=4).fit(jobs)
    assert encoder.get_feature_names_out().tolist() == ["job=a", "job=y", "job=z", "job=(other)"]
    out = encoder.transform(pd.DataFrame({"job": ["c", "new", "z"]}))
    assert out.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert "b" not in encoder.features_[0].categories  # rare values stay out of model files


def test_equally_rare_categories_are_kept_in_alphabetical_order():
    jobs = [[f"{i:02}"] for i in np.random.default_rng(0).permutation(np.arange(60) % 40)] * 2
    encoder = TableEncoder(max_categories=31, min_category_rows=1).fit(jobs)
    assert encoder.features_[0].categories[-10:] == [f"{i}" for i in range(20, 30)]


def test_a_value_of_fewer_than_ten_rows_is_merged_whatever_it_is():
    jobs = ["nurse"] * 60 + ["cook"] * 40 + ["abbot"] * 9 + ["pope"]
    rank = [None] * 101 + ["high"] * 9
    pension = [np.nan] * 101 + [4711.0] * 9
    encoder = TableEncoder().fit(
        pd.DataFrame({"job": jobs, "rank": rank, "pension": pension, "n": [f"{i % 55}" for i in range(110)]})
    )
    assert encoder.get_feature_names_out().tolist() == [
        "job=cook",
        "job=nurse",
        "job=(other)",
        "rank=(other)",
        "rank=(missing)",
    ]
    assert encoder.dropped_ == {
        "pension": "rare: only 9 of 110 rows have a value",
        "n": "rare: none of its 55 values is frequent enough",
    }
    kept = TableEncoder(min_category_rows=9).fit(pd.DataFrame({"job": jobs}))
    assert kept.get_feature_names_out().tolist() == ["job=abbot", "job=cook", "job=nurse", "job=(other)"]


def test_a_small_table_keeps_what_a_tenth_of_its_rows_have():
    assert TableEncoder().fit([["a"], ["b"]] * 2 + [["c"]] * 15).features_[0].categories == ["a", "b", "c"]
    assert TableEncoder().fit([["a"]] + [["b"]] * 20).features_[0].categories == ["b"]


def test_exactly_the_cap_is_not_merged():
    names = TableEncoder(max_categories=3).fit([["a"], ["b"], ["c"]]).get_feature_names_out()
    assert names.tolist() == ["x0=a", "x0=b", "x0=c"]


def test_dropped_columns_are_reported():
    n = 40
    table = pd.DataFrame(
        {
            "keep": range(n),
            "one": 7,
            "text": "x",
            "empty": np.nan,
            "nothing": [None] * n,
            "infinite": np.inf,
            "id": [f"person {i}" for i in range(n)],
        }
    )
    encoder = TableEncoder().fit(table)
    assert encoder.dropped_ == {
        "one": "constant: 7 in every row",
        "text": "constant: 'x' in every row",
        "empty": "no value: every row is missing or infinite",
        "nothing": "no value: every row is missing",
        "infinite": "no value: every row is missing or infinite",
        "id": "identifier: 40 distinct values in 40 rows",
    }
    assert encoder.transform(table).shape == (n, 1)
    assert "id: dropped, identifier" in encoder.describe()


def test_identifiers_can_be_kept():
    ids = pd.DataFrame({"id": [f"p{i:02}" for i in range(40)]})
    assert encoded(ids, identifier_share=None, max_categories=5, min_category_rows=1).sum() == 40


def test_constant_with_gaps_keeps_the_indicator_only():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [5, np.nan, 5]}))
    assert encoder.get_feature_names_out().tolist() == ["a (missing)"]
    assert encoder.transform(pd.DataFrame({"a": [9, np.nan]})).tolist() == [[0], [1]]


def test_infinite_numbers_count_as_missing():
    np.testing.assert_array_equal(encoded([[1.0], [np.inf], [3.0]]), encoded([[1.0], [np.nan], [3.0]]))


def test_median_is_imputed():
    encoder = TableEncoder(impute="median", dtype=np.float64).fit([[0.0], [0.0], [9.0], [np.nan]])
    assert encoder.transform([[np.nan]])[0, 0] == encoder.transform([[0.0]])[0, 0]


def test_mixed_objects_are_categories_by_their_text():
    mixed = pd.DataFrame({"m": pd.Series([1, "a", 1.0, True, None, "1"], dtype=object)})
    encoder = TableEncoder().fit(mixed)
    assert encoder.get_feature_names_out().tolist() == ["m=1", "m=True", "m=a", "m=(missing)"]
    assert encoder.transform(mixed).argmax(axis=1).tolist() == [0, 2, 0, 1, 3, 0]
    assert encoder.transform(pd.DataFrame({"m": [1, 1]}))[0].tolist() == [1, 0, 0, 0]


def test_numbers_as_text_at_transform_are_read_as_numbers():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1, 2]}))
    assert encoder.transform(pd.DataFrame({"a": ["1", "2"]})).tolist() == [[-1], [1]]


def test_huge_and_tiny_numbers_stay_finite():
    x = np.array([[-1.7e308, 0.0], [1.7e308, 5e-324], [1.0, 5e-324]])
    assert np.isfinite(encoded(x)).all()
    assert np.isfinite(TableEncoder().fit([[0.0], [1e-300]]).transform([[1e300]])).all()


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (7, 2), elements=st.floats(width=64)))
def test_output_is_finite_for_any_numbers(x):
    x = np.hstack([x, np.arange(7.0)[:, None]])
    encoder = TableEncoder().fit(x)
    assert np.isfinite(encoder.transform(x)).all()
    again = TableState.model_validate_json(written(encoder)).build(None)
    np.testing.assert_array_equal(again.transform(x), encoder.transform(x))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=6, max_size=30), st.randoms())
def test_row_order_does_not_matter(values, random):
    table = pd.DataFrame({"n": range(len(values)), "c": pd.Series(values, dtype=object)})
    order = random.sample(range(len(values)), len(values))
    one, other = (TableEncoder(max_categories=2).fit(t) for t in (table, table.iloc[order]))
    assert one.features_[1] == other.features_[1]
    assert (one.transform(table)[:, 1:].sum(axis=1) == 1).all() or "c" in one.dropped_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_categories": 1}, "max_categories=1 must be a whole number at least 2"),
        ({"impute": "mode"}, "impute='mode' must be one of 'mean', 'median'"),
        ({"identifier_share": 0}, "identifier_share=0 must be a number above 0 and at most 1.*identifier_share=None"),
        ({"dtype": np.int64}, "dtype=.*int64.* must be numpy.float32"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**parameters).fit(pandas_table())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": []}), r"shape \(0, 1\); it needs 2 row\(s\)"),
        (pd.DataFrame(index=range(3)), r"shape \(3, 0\); .* 1 column"),
        (
            pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
            "More than one column is named 'a'. Rename or drop",
        ),
        (pd.DataFrame({"a": [1, 1]}), r"every column was dropped: a \(constant"),
        (pd.DataFrame({"sex": ["M", "F"], "sex=M": [1, 0]}), "Two output columns would be named 'sex=M'.*Rename"),
        (pd.DataFrame({"a": [1j, 2j]}), "'a' cannot be encoded: Complex data not supported"),
        (np.zeros((0, 2)), r"0 sample\(s\)"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(table)


def test_cells_that_are_no_values():
    with pytest.raises(TypeError, match=r"'a' cannot be encoded: .*string or a number, found a dict"):
        TableEncoder().fit(pd.DataFrame({"a": [{"b": 1}, "x"]}))


def test_lazy_frame():
    with pytest.raises(TypeError, match=r"is a LazyFrame. Pass .*collect\(\)"):
        TableEncoder().fit(pl.LazyFrame(COLUMNS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="sex"), "now missing:\n- sex\n(?s:.*)Pass the columns of fit in order"),
        (lambda t: t[t.columns[::-1]], "same order"),
        (lambda t: t.assign(age="old"), "'age' cannot be encoded: could not convert string to float: 'old'"),
        (
            lambda t: t.assign(age=t["since"]),
            "'age' cannot be encoded: held numbers in fit and holds dates now",
        ),
        (lambda t: t.assign(since="today"), "'since' cannot be encoded: held dates in fit .*to_datetime"),
    ],
)
def test_other_columns_at_transform(change, message):
    encoder = TableEncoder().fit(pandas_table())
    with pytest.raises(ValueError, match=message):
        encoder.transform(change(pandas_table()))


def test_columns_that_fit_did_not_see_are_ignored():
    table = pandas_table()
    encoder, wider = TableEncoder().fit(table), table.assign(town="Ghent", older=1)[["town", *COLUMNS, "older"]]
    for more in (wider, pl.from_pandas(wider)):
        np.testing.assert_array_equal(encoder.transform(more), encoder.transform(table))
    nameless = TableEncoder().fit([[1], [2], [4]])
    with pytest.warns(UserWarning, match="X has feature names"):
        assert nameless.transform(pd.DataFrame({"a": [1, 2]})).shape == (2, 1)


def test_columns_of_another_table_and_dropped_ones_are_fields_of_the_error():
    encoder = TableEncoder().fit(pandas_table())
    with pytest.raises(ColumnsMismatchError) as caught:
        encoder.transform(pandas_table()[["age", "sex"]])
    assert (caught.value.found, caught.value.fitted) == (["age", "sex"], list(COLUMNS))
    with pytest.raises(NothingToEncodeError) as nothing:
        TableEncoder().fit(pd.DataFrame({"a": [1, 1]}))
    assert nothing.value.dropped == {"a": "constant: 1 in every row"}


def test_durations_are_numbers():
    days = pd.DataFrame({"wait": pd.to_timedelta([1, 2, 3], unit="D")})
    np.testing.assert_allclose(encoded(days), encoded([[1], [2], [3]]), rtol=1e-6)


def test_a_column_that_counts_the_rows_is_reported_and_dropped():
    ids = np.random.default_rng(0).permutation(np.arange(1000, 1200))
    table = pd.DataFrame({"id": ids, "age": np.arange(200) % 60})
    encoder = TableEncoder().fit(table)
    assert "identifier" in encoder.dropped_["id"]
    assert list(encoder.get_feature_names_out()) == ["age"]
