import pandas as pd
import pytest

from fairbits.datasets import Dataset, load_adult, load_bank, load_compas


def encoded_width(X: pd.DataFrame) -> int:
    """Count the columns of a one-hot encoding, without using an encoder."""
    return sum(1 if pd.api.types.is_numeric_dtype(X[name]) else X[name].nunique() for name in X)


def counts(s: pd.Series) -> dict[str, int]:
    return s.value_counts().to_dict()


@pytest.fixture(scope="module", params=[load_compas, load_adult, load_bank])
def data(request):
    return request.param()


def test_record_is_complete(data):
    assert isinstance(data, Dataset)
    assert len(data) == len(data.X) == len(data.y) == len(data.s)
    assert data.X.index.equals(pd.RangeIndex(len(data)))
    assert data.X.index.equals(data.y.index)
    assert data.X.index.equals(data.s.index)
    assert set(data.y) == {0, 1}
    assert data.y.name == data.target_name
    assert data.s.name not in data.X
    assert data.target_name not in data.X
    assert len(data.caveats) >= 5
    assert all(caveat.endswith((".", ")")) and "{" not in caveat for caveat in data.caveats)


def test_nothing_is_missing(data):
    assert not data.X.isna().any(axis=None)
    assert not data.s.isna().any()


def test_record_is_frozen(data):
    with pytest.raises(AttributeError):
        data.X = None


def test_record_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="X has 2 rows, y 3, s 2"):
        Dataset("a", pd.DataFrame({"x": [1, 2]}), pd.Series([0, 1, 1]), pd.Series(["a", "b"]), "y", "1", "")


def test_compas_as_the_authors_load_it():
    data = load_compas()
    assert list(data.X) == ["priors_count", "sex", "age_cat", "c_charge_degree"]
    assert counts(data.s) == {"African-American": 3696, "Caucasian": 2454}
    assert data.y.groupby(data.s).sum().to_dict() == {"African-American": 1901, "Caucasian": 966}
    assert encoded_width(data.X) == 8
    assert any("236 distinct" in caveat for caveat in data.caveats)


def test_compas_with_all_races():
    data = load_compas(races=None)
    assert len(data) == 7214
    assert data.y.sum() == 3251
    assert counts(data.s) == {
        "African-American": 3696,
        "Caucasian": 2454,
        "Hispanic": 637,
        "Other": 377,
        "Asian": 32,
        "Native American": 18,
    }


def test_compas_with_propublicas_filter():
    assert len(load_compas(version="propublica", races=None)) == 6172
    data = load_compas(version="propublica")
    assert counts(data.s) == {"African-American": 3175, "Caucasian": 2103}
    assert data.y.sum() == 2483


def test_compas_corrected_for_the_cutoff():
    data = load_compas(version="corrected")
    assert counts(data.s) == {"African-American": 2682, "Caucasian": 1829}
    assert data.y.mean() == pytest.approx(0.3804, abs=5e-5)
    assert not any("1 April 2014" in caveat for caveat in data.caveats)
    assert any("1 April 2014" in caveat for caveat in load_compas().caveats)


def test_compas_other_features_and_races():
    data = load_compas(features="all", races=["Hispanic", "Caucasian"])
    assert counts(data.s) == {"Caucasian": 2454, "Hispanic": 637}
    assert set(load_compas().X) < set(data.X)
    assert not {"is_recid", "days_b_screening_arrest", "full_follow_up", "score_text"} & set(data.X)
    assert data.X["decile_score"].between(1, 10).all()


def test_adult_as_the_authors_load_it():
    data = load_adult()
    assert counts(data.s) == {"Male": 21790, "Female": 10771}
    assert data.y.sum() == 7841
    assert encoded_width(data.X) == 106
    assert (data.X["native-country"] == "?").sum() == 583
    assert {"fnlwgt", "race"} <= set(data.X)


@pytest.mark.parametrize(
    ("subset", "rows", "positive", "complete"),
    [("train", 32561, 7841, 30162), ("test", 16281, 3846, 15060), ("both", 48842, 11687, 45222)],
)
def test_adult_subsets(subset, rows, positive, complete):
    data = load_adult(subset=subset)
    assert (len(data), data.y.sum()) == (rows, positive)
    dropped = load_adult(subset=subset, drop_missing=True)
    assert len(dropped) == complete
    assert not (dropped.X == "?").any(axis=None)
    assert not any("'?'" in caveat for caveat in dropped.caveats)


def test_adult_by_race():
    data = load_adult(sensitive="race")
    assert counts(data.s)["White"] == 27816
    assert "sex" in data.X
    assert "race" not in data.X
    assert not any("Husband" in caveat for caveat in data.caveats)


def test_bank_defaults():
    data = load_bank()
    assert counts(data.s) == {"25 to 65": 43651, "under 25 or over 65": 1560}
    assert data.y.sum() == 5289
    assert encoded_width(data.X) == 50
    assert "duration" in data.X
    assert "age" not in data.X
    assert any("AUC 0.81" in caveat for caveat in data.caveats)


def test_bank_ages_are_inclusive():
    data = load_bank(ages=(26, 59))
    assert counts(data.s) == {"26 to 59": 42091, "under 26 or over 59": 3120}
    assert counts(load_bank(ages=(25, 60)).s)["25 to 60"] == 43214


def test_bank_without_duration():
    data = load_bank(drop_duration=True)
    assert "duration" not in data.X
    assert not any("duration" in caveat for caveat in data.caveats)


def test_duration_gives_the_outcome_away():
    data = load_bank()
    ranks, n_yes = data.X["duration"].rank(), data.y.sum()
    auc = (ranks[data.y == 1].sum() - n_yes * (n_yes + 1) / 2) / (n_yes * (len(data) - n_yes))
    assert auc == pytest.approx(0.81, abs=0.005)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_compas(version="raw"), r"version='raw' .* 'authors', 'propublica', 'corrected'"),
        (lambda: load_compas(features=["age"]), r"features=\['age'\] .* 'authors', 'all'"),
        (lambda: load_compas(races="Caucasian"), r"races='Caucasian' .* two or more of \['African-American'"),
        (
            lambda: load_compas(races=["Caucasian", "Martian"]),
            r"races=\['Caucasian', 'Martian'\] .* None for all",
        ),
        (lambda: load_adult(subset="all"), r"subset='all' .* 'both'"),
        (lambda: load_adult(sensitive="age"), r"sensitive='age' .* 'sex', 'race'"),
        (lambda: load_adult(drop_missing="yes"), r"drop_missing='yes' .* one of True, False"),
        (lambda: load_bank(version="extra"), r"version='extra' .* 'full', 'additional'"),
        (lambda: load_bank(ages=25), r"ages=25 .* \(25, 65\)"),
        (lambda: load_bank(ages=(65, 25)), r"ages=\(65, 25\) .* first and the last"),
        (lambda: load_bank(ages=(25.5, 65)), r"ages=\(25.5, 65\) .* whole"),
        (lambda: load_bank(ages=(1, 120)), r"ages=\(1, 120\) leaves a group empty.*18 to 95"),
        (lambda: load_bank(drop_duration=None), r"drop_duration=None .* one of True, False"),
        (lambda: load_bank(version="additional"), r"data_home=None.*bank-additional-full.csv"),
    ],
)
def test_bad_options_name_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
