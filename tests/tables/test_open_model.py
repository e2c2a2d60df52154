"""Models from Python on the command line: those that fit, and a sentence for each that does not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from fairbits import BinaryMIClassifier, CertifiedClassifier, Schedule, TableEncoder, VanillaClassifier, save
from fairbits.commands.release_codes import release_table
from fairbits.tables.fitted_model import open_model
from fairbits.tables.table_file import TableFile
from fairbits.workflow.recertify import CONFIRMED, recertify

BRIEF = {"max_epochs": 2, "schedule": Schedule(min_steps=0), "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::fairbits.estimators.VanishedClassWarning")


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "kind": rng.choice(["x", "y"], n), "sex": rng.choice(["F", "M"], n)})
    return frame, (frame.a > 0).to_numpy().astype(int)


def test_a_certified_model_brings_its_promise(tmp_path):
    X, y = people(2000, 0)
    method = make_pipeline(TableEncoder(), BinaryMIClassifier(code_size=3, **BRIEF))
    model = CertifiedClassifier(method, max_disparity=0.5, gammas=(0.5,), random_state=0)
    save(model.fit(X[["a", "kind"]], y, sensitive_features=X[["sex"]]), tmp_path / "model")
    opened = open_model(tmp_path)
    assert opened.limit.promised
    assert opened.limit.total_variation == {"sex": 0.5}
    people(1000, 1)[0].to_csv(tmp_path / "new.csv", index=False)
    found = recertify(opened, TableFile(tmp_path / "new.csv"))
    assert found.verdict == CONFIRMED
    assert [(c.of, c.what) for c in found.compared] == [("code", "disparity"), ("class", "disparity")]
    released, _ = release_table(opened, TableFile(tmp_path / "new.csv"))
    assert (len(released.codes), released.covered) == (1000, True)


def test_models_that_cannot_be_used_here_say_why(tmp_path):
    X, y = people(300, 0)
    save(VanillaClassifier(**BRIEF).fit(X[["a"]].to_numpy(), y), tmp_path / "numbers")
    with pytest.raises(ValueError, match="without a table's column names"):
        open_model(tmp_path / "numbers")
    save(make_pipeline(TableEncoder(), VanillaClassifier(**BRIEF)).fit(X[["a", "kind"]], y), tmp_path / "plain")
    with pytest.raises(ValueError, match="a VanillaClassifier, which has no random code"):
        open_model(tmp_path / "plain").need_code()
    with pytest.raises(ValueError, match="was fitted without sensitive columns"):
        _ = open_model(tmp_path / "plain").groups
