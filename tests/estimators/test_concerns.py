"""What users are warned of, and when they are left in peace."""

import warnings

import numpy as np
import pandas as pd
import pytest
from battery import CODES, by_kind, learned, problem, quick
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from fairbits import BinaryMIClassifier, TableEncoder, VanillaClassifier
from fairbits.certificate import TrainingRowsWarning
from fairbits.datasets import load_compas
from fairbits.estimators import CollapsedCodeWarning, SaturatedPenaltyWarning, VanishedClassWarning, fit_stack
from fairbits.estimators.binary import conditional_entropy


@pytest.mark.parametrize("cls", by_kind())
def test_a_sound_fit_warns_of_nothing(cls):
    learned(cls)  # in which every warning is an error


@pytest.mark.parametrize("cls", CODES)
def test_a_code_without_content_is_told(cls):
    X, y, s = problem()
    with pytest.warns(CollapsedCodeWarning, match="gamma"):
        quick(cls, temperature=1000).fit(X, y, sensitive_features=s)


@pytest.mark.parametrize("cls", by_kind())
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_a_class_is_told_to_have_vanished_if_and_only_if_it_has(cls, rate):
    X, _, s = problem()
    y = (np.random.default_rng(0).random(len(X)) < rate).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = quick(cls, learning_rate=0.003).fit(X, y, sensitive_features=s)
    told = any(issubclass(w.category, (VanishedClassWarning, CollapsedCodeWarning)) for w in caught)
    assert told == (len(np.unique(model.predict(X))) < 2)


@pytest.mark.parametrize("cls", [VanillaClassifier, *CODES])
def test_a_class_that_is_never_predicted_is_told(cls):
    X, _, s = problem()
    y = (np.random.default_rng(0).random(len(X)) < 0.05).astype(int)  # rare, and unpredictable
    with pytest.warns(VanishedClassWarning, match="never predicts the class '1'"):
        quick(cls, min_steps=100).fit(X, y, sensitive_features=s)


def test_a_penalty_at_its_largest_value_is_told():
    """24 hard bits on batches of 32 rows: every row has its own word, whatever it tells."""
    X, y, s = problem(600)
    settings = {"code_size": 24, "batch_size": 32, "temperature": 0.001, "warmup_epochs": 0}
    with pytest.warns(SaturatedPenaltyWarning, match="batch_size"):
        quick(BinaryMIClassifier, gamma=0.1, wide="draws", **settings).fit(X, y, sensitive_features=s)
    blocks = quick(BinaryMIClassifier, gamma=0.1, **settings)
    fit_stack([blocks], X, y, sensitive_features=s)
    assert not [c for c in blocks.concerns(X, y, s) if isinstance(c, SaturatedPenaltyWarning)]


def test_entropy_within_labels():
    groups = np.array([[0], [1], [0], [1]])
    assert conditional_entropy(groups) == pytest.approx(1)
    assert conditional_entropy(groups, np.array([0, 1, 0, 1])) == 0
    assert conditional_entropy(np.hstack([groups, groups])) == pytest.approx(2)


def certify_quietly(model, X, s):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.certify(X, sensitive_features=s)


def test_calibrating_on_training_rows_is_told_and_held_out_rows_are_not():
    data = load_compas()
    X = pd.DataFrame(np.asarray(TableEncoder().fit_transform(data.X)))
    rows = train_test_split(np.arange(len(X)), stratify=data.s, random_state=0)
    (X, X_held), (y, _), (s, s_held) = ([part.iloc[r] for r in rows] for part in (X, data.y, data.s))
    model = quick(BinaryMIClassifier).fit(X, y, sensitive_features=s)
    for again in (slice(None), slice(None, None, -1), slice(0, 1000)):
        with pytest.warns(TrainingRowsWarning, match="kept apart"):
            model.certify(X.iloc[again], sensitive_features=s.iloc[again])
    certify_quietly(model, X_held, s_held)
    certify_quietly(model, X_held.to_numpy(), s_held)
    certify_quietly(model, X_held.reset_index(drop=True), s_held)


def test_a_pipeline_is_certified_as_a_whole():
    X, y, s = problem()
    X = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", "no")})
    pipe = make_pipeline(TableEncoder(), quick(BinaryMIClassifier))
    pipe.fit(X[:400], y[:400], binarymiclassifier__sensitive_features=s[:400])
    from fairbits import certify

    inside = certify(pipe[-1], pipe[:-1].transform(X[400:]), sensitive_features=s[400:])
    assert certify(pipe, X[400:], sensitive_features=s[400:]) == inside
