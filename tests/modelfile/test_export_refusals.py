"""What cannot be exported is refused with the reason; nothing of the extra is needed for that."""

import pytest
from battery import problem, quick
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    ExactCodeClassifier,
    TableEncoder,
    VanillaClassifier,
    export_onnx,
)
from fairbits.errors import InputError, MissingExtraError
from fairbits.estimators.posterior import PosteriorEncoder


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LogisticRegression(), "LogisticRegression"),
        (make_pipeline(StandardScaler(), quick(VanillaClassifier)), "StandardScaler -> VanillaClassifier"),
        (make_pipeline(TableEncoder(), LogisticRegression()), "TableEncoder -> LogisticRegression"),
        (
            make_pipeline(TableEncoder(), StandardScaler(), quick(VanillaClassifier)),
            "TableEncoder -> StandardScaler -> VanillaClassifier",
        ),
    ],
    ids=["method", "first step", "last step", "step between"],
)
def test_what_is_not_exported_is_said(model, name, tmp_path):
    X, y, _ = problem()
    with pytest.raises(TypeError, match=f"cannot export {name}: it exports a fitted method"):
        export_onnx(model.fit(X, y), tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "model", [BinaryMIClassifier(), make_pipeline(TableEncoder(), BinaryMIClassifier()), CertifiedClassifier()]
)
def test_a_model_must_be_fitted(model, tmp_path):
    with pytest.raises(NotFittedError):
        export_onnx(model, tmp_path / "none")


def test_a_code_that_is_not_covered_is_not_exported(tmp_path):
    X, y, s = problem()
    method = quick(ExactCodeClassifier, code_size=2, max_epochs=2)
    model = CertifiedClassifier(method, path=[0.5], max_disparity=0.99, promise="class", random_state=0)
    with pytest.raises(InputError, match="about the predicted class alone: a code of this model is not covered"):
        export_onnx(model.fit(X, y, sensitive_features=s), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_model_must_be_one(tmp_path):
    with pytest.raises(TypeError, match="cannot export str"):
        export_onnx("model", tmp_path / "none")


@pytest.mark.parametrize("library", ["onnx", "onnxscript"])
def test_a_missing_library_is_named_with_the_remedy(library, tmp_path, monkeypatch):
    X, y, _ = problem()
    model = quick(VanillaClassifier).fit(X, y)
    monkeypatch.setattr("fairbits.modelfile.onnx_export.find_spec", lambda name: None if name == library else "found")
    said = (
        rf"^export_onnx uses {library} and needs packages that are not installed\. pip install 'fairbits\[export\]'\.$"
    )
    with pytest.raises(MissingExtraError, match=said):
        export_onnx(model, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_learners_of_yours_are_refused(tmp_path):
    X, y, s = problem()
    front, method = PosteriorEncoder(LogisticRegression()), quick(ExactCodeClassifier)
    method.fit(front.fit_transform(X, y, sensitive_features=s), y, sensitive_features=s)
    with pytest.raises(InputError, match=r"default estimators of a PosteriorEncoder alone.*estimators='default'"):
        export_onnx(Pipeline([("posterior", front), ("code", method)]), tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.filterwarnings("ignore::fairbits.estimators.SensitiveFeatureInXWarning")
@pytest.mark.parametrize("encoder", [PosteriorEncoder(encode_sensitive=True), TableEncoder(encode_sensitive=True)])
def test_encoders_that_read_the_groups_are_refused(encoder, tmp_path):
    X, y, s = problem()
    method = quick(ExactCodeClassifier)
    method.fit(encoder.fit_transform(X, y, sensitive_features=s), y, sensitive_features=s)
    with pytest.raises(InputError, match=r"encoders that read the sensitive columns.*fairbits\.save"):
        export_onnx(Pipeline([("encoder", encoder), ("code", method)]), tmp_path / "none")
    assert not (tmp_path / "none").exists()
