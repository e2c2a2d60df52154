"""Models in folders, and new rows as they read them; a sentence for each that cannot be used."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    FairCodeClassifier,
    Schedule,
    TableEncoder,
    VanillaClassifier,
    save,
)
from fairbits.commands.transform import Files
from fairbits.encoding import GroupEncoder
from fairbits.tables.fitted_model import FittedModel, RowReader, open_model
from fairbits.tables.group_reader import GroupReader
from fairbits.tables.table_file import TableFile
from fairbits.workflow.model_checks import recertify
from fairbits.workflow.recertified import CONFIRMED

BRIEF = {"max_epochs": 2, "schedule": Schedule(min_steps=0), "random_state": 0}
VANISHED = pytest.mark.filterwarnings("ignore::fairbits.estimators.VanishedClassWarning")


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "kind": rng.choice(["x", "y"], n), "sex": rng.choice(["F", "M"], n)})
    return frame, (frame.a > 0).to_numpy().astype(int)


@VANISHED
def test_a_certified_model_brings_its_promise(tmp_path):
    X, y = people(2000, 0)
    method = make_pipeline(TableEncoder(), BinaryMIClassifier(code_size=3, **BRIEF))
    model = CertifiedClassifier(method, max_disparity=0.5, path=(0.5,), random_state=0)
    save(model.fit(X[["a", "kind"]], y, sensitive_features=X[["sex"]]), tmp_path / "model")
    opened = open_model(tmp_path)
    assert opened.limit.promised
    assert opened.limit.total_variation == {"sex": 0.5}
    people(1000, 1)[0].to_csv(tmp_path / "new.csv", index=False)
    found = recertify(opened, TableFile(tmp_path / "new.csv"))
    assert found.verdict == CONFIRMED
    assert [(c.of, c.what) for c in found.compared] == [("code", "disparity"), ("class", "disparity")]
    released = Files(tmp_path, tmp_path / "new.csv", tmp_path / "bits.csv").codes(person=None)[1]
    assert (len(released.codes), released.most_draws, released.certified_draws) == (1000, 1, 1)
    assert released.covered is None  # people have no names


@VANISHED
def test_models_that_cannot_be_used_here_say_why(tmp_path):
    X, y = people(300, 0)
    save(VanillaClassifier(**BRIEF).fit(X[["a"]].to_numpy(), y), tmp_path / "numbers")
    with pytest.raises(ValueError, match="without a table's column names"):
        open_model(tmp_path / "numbers")
    save(make_pipeline(TableEncoder(), VanillaClassifier(**BRIEF)).fit(X[["a", "kind"]], y), tmp_path / "plain")
    with pytest.raises(ValueError, match="a VanillaClassifier, which has no code"):
        open_model(tmp_path / "plain").need_code()
    with pytest.raises(ValueError, match="was fitted without sensitive columns"):
        _ = open_model(tmp_path / "plain").groups


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
    model = FittedModel(tmp_path, make_pipeline(encoder, "passthrough"), record=None, limit=None)
    expected = encoder.transform(table.read().frame)
    np.testing.assert_array_equal(RowReader(model, table).encoded(), expected)


def model_of(s, bins=None):
    encoder = GroupEncoder(min_group_size=1).fit(s)
    end = Pipeline([("end", SimpleNamespace(group_encoder_=encoder))])
    return FittedModel(None, end, {"task": bins or {}}, None)


def written(folder, **columns):
    pd.DataFrame(columns).to_csv(folder / "new.csv", index=False)
    return TableFile(folder / "new.csv")


def known_groups(model, table):
    """Return the rows of known groups, which of all rows these are, and what is said of the others."""
    reader = GroupReader(model.groups, model.record["task"], table)
    s, known = zip(*(reader.piece(beside) for _, beside in table.pairs([], reader.columns)), strict=True)
    return pd.concat(s, ignore_index=True), np.concatenate(known), reader.notes


def test_rows_of_unknown_groups_and_combinations_are_left_out(tmp_path):
    model = model_of({"sex": ["F", "F", "M"], "race": ["B", "W", "W"]})
    table = written(tmp_path, sex=["F", "M", "X", "M", "F", None], race=list("BBBWWW"))
    s, known, notes = known_groups(model, table)
    assert known.tolist() == [True, False, False, True, True, False]
    assert s.to_numpy().tolist() == [["F", "B"], ["M", "W"], ["F", "W"]]
    assert "2 rows have a sex that the model does not know" in notes[0]
    assert notes[1] == "1 rows have a combination that the model does not know: left out."


@pytest.mark.filterwarnings("ignore::fairbits.encoding.BinnedSensitiveFeaturesWarning")
def test_sensitive_numbers_are_read_as_in_the_fit(tmp_path):
    model = model_of({"age": np.arange(20, 60)})
    s, _, notes = known_groups(model, written(tmp_path, age=["30", "", "inf", "99"], other=1))
    assert s.age.tolist() == [30, 99]
    assert notes == ["age is missing in 2 rows: left out."]
    binned = model_of({"age": ["under 40", "40 and over"]}, {"cuts": {"age": [40.0]}})
    s, _, _ = known_groups(binned, written(tmp_path, age=[39, 40], other=1))
    assert s.age.tolist() == ["under 40", "40 and over"]
    older = model_of({"age": ["[20, 40)", "[40, 59]"]}, {"bins": {"age": [20.0, 40.0, 59.0]}})
    s, _, _ = known_groups(older, written(tmp_path, age=[39, 40], other=1))
    assert s.age.tolist() == ["[20, 40)", "[40, 59]"]
    for one in (model, binned, older):
        with pytest.raises(ValueError, match=r"'age' of .*numbers or dates such as 2026-01-31 .* row 2 it is 'old'"):
            known_groups(one, written(tmp_path, age=["30", "old"], other=1))


@VANISHED
@pytest.mark.parametrize("seeing", [False, True])
def test_rows_go_through_the_whole_front(tmp_path, seeing):
    """Also of a model that was made in Python; what it reads of the sensitive column is what certify reads of it."""
    X, y = people(600, 0)
    method = FairCodeClassifier(code_size=3, random_state=0, encode_sensitive=seeing).pipeline()
    method.set_params(code__max_epochs=2, **({"code__schedule": Schedule(min_steps=0)} if seeing else {}))
    model = CertifiedClassifier(method, max_disparity=0.9, path=(0.5,), random_state=0)
    save(model.fit(X[["a", "kind"]], y, sensitive_features=X[["sex"]]), tmp_path / "model")
    new, opened = people(100, 1)[0], open_model(tmp_path)
    new.to_csv(tmp_path / "new.csv", index=False)
    assert opened.is_hard
    assert list(opened.features) == ["a", "kind"]
    rows = RowReader(opened, TableFile(tmp_path / "new.csv")).encoded()
    known = {"sensitive_features": new[["sex"]]} if seeing else {}
    expected = model.estimator_[0].transform(new[["a", "kind"]], **known)
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    np.testing.assert_array_equal(opened.method.transform(rows), model.transform(new[["a", "kind"]], **known))
