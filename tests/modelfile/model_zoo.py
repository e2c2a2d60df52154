"""Fitted models of every kind, trained for a fraction of a second, with rows to try them on; not to be changed."""

from functools import cache

import numpy as np
import pandas as pd
from battery import few_trees, problem, quick
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits import BinaryMIClassifier, CertifiedClassifier, ExactCodeClassifier, FairCodeClassifier, TableEncoder
from fairbits.estimators.posterior import PosteriorEncoder


def mixed_table(n=600, seed=0):
    """A table with all that `TableEncoder` knows, a label of texts and two sensitive columns."""
    X, y, s = problem(n, seed=seed)
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(X, columns=["age", "hours", "score"])
    table.loc[rng.random(n) < 0.1, "hours"] = np.nan
    table["job"] = pd.Series(rng.choice(["nurse", "smith", "clerk", None], n), dtype=object)
    table["member"] = rng.random(n) < 0.5
    table["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    table["land"] = "NL"
    table["grade"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    return table, np.array(["no", "yes"])[y], pd.DataFrame({"sex": np.array(["f", "m"])[s], "old": np.arange(n) % 3})


def pipeline(**settings):
    """A pipeline of a table encoder and a method, and the table it was fitted to."""
    table, y, s = mixed_table()
    model = make_pipeline(TableEncoder(), quick(BinaryMIClassifier, **settings))
    return model.fit(table, y, binarymiclassifier__sensitive_features=s), table, s


@cache
def certified():
    """A certified classifier around a pipeline, and its table."""
    table, y, s = mixed_table(3000)
    method = make_pipeline(TableEncoder(), quick(BinaryMIClassifier, code_size=3, gamma=0.2))
    model = CertifiedClassifier(method, path=(0.5, 0.9), max_disparity=0.9, random_state=0)
    return model.fit(table, y, sensitive_features=s[["sex"]]), table, s[["sex"]]


@cache
def posterior_pipeline(grouping="intersection", n_classes=2, **settings):
    """A pipeline of an encoder of estimates and a code, and its table; the age decides between three classes."""
    table, y, s = mixed_table()
    y = y if n_classes == 2 else np.array(["a", "b", "c"])[np.digitize(table.age, [0, 2])]
    steps = [("posterior", PosteriorEncoder(groups=grouping, **settings)), ("code", quick(ExactCodeClassifier))]
    with few_trees():
        front, method = Pipeline(steps)
        rows = front.fit_transform(table, y, sensitive_features=s)
        method.fit(rows, y, sensitive_features=s[["sex"]])
    return Pipeline(steps), table, s


def fair_code(**settings):
    """A fair code, and its table."""
    table, y, s = mixed_table()
    with few_trees():
        model = FairCodeClassifier(random_state=0, **settings).fit(table, y, sensitive_features=s[["sex"]])
    return model, table, s[["sex"]]


def certified_fair_code(estimator=None, **settings):
    """A certified classifier around a fair code or a pipeline that holds estimates, and its table."""
    table, y, s = mixed_table(1200)
    settings = {"max_disparity": 0.9, "path": (0.2, 0.4), "random_state": 0, **settings}
    with few_trees():
        model = CertifiedClassifier(estimator, **settings).fit(table, y, sensitive_features=s[["sex"]])
    return model, table, s[["sex"]]


def images(cls, n=80, **settings):
    """A method fitted to small images, and the images."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, n))
    pictures = rng.integers(0, 200, (n, 3, 8, 6), dtype=np.uint8)
    pictures[y == 1, 0] += 50
    model = quick(cls, channels=(4, 5), max_epochs=2, min_steps=4, **settings)
    return model.fit(pictures, y, sensitive_features=s), pictures
