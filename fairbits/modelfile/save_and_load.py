"""Save a fitted model to a folder of JSON and weights, and load it.

The folder appears whole or not at all, and its files are checked by the manifest before anything in them is used.
"""

import functools
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import safetensors.torch
import torch
from pydantic import AliasChoices, Field
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from torch import Tensor

from fairbits.certificate import Certificate
from fairbits.encoding import GroupEncoder
from fairbits.estimators import CertifiedClassifier, FairCodeClassifier
from fairbits.estimators.base import method_path
from fairbits.modelfile import manifest
from fairbits.modelfile import model_content as content
from fairbits.storage import need, versions

Strength = Annotated[int | float, Field(ge=0, le=1)]  # a limit to train to, or a gamma
Chosen = content.MethodState | content.PipelineState
Encoder = content.GroupsState | content.TableState | content.PosteriorState
Shown = bool | content.Whole | Annotated[float, Field(strict=False, allow_inf_nan=True)]  # "nan" is a text in the file


class FairCodeState(content.State):
    kind: Literal["fair code"]
    pipeline: content.PipelineState
    output: content.Output

    @classmethod
    def of(cls, model: FairCodeClassifier) -> dict[str, Any]:
        return cls.parts_of(model, pipeline=content.PipelineState.of(model.estimator_))

    def build(self, weights: content.Weights) -> FairCodeClassifier:
        pipeline = self.pipeline.build(weights)
        model = fair_code_of(pipeline)
        model.estimator_, model.classes_ = pipeline, pipeline[-1].classes_
        content.set_columns(model, pipeline.n_features_in_, getattr(pipeline, "feature_names_in_", None))
        return model.set_output(transform=self.output)


def fair_code_of(pipeline: Pipeline) -> Any:
    """Return a FairCodeClassifier, not fitted, with the settings of the pipeline that another one had fitted."""
    kinds = [type(step).__name__ for _, step in pipeline.steps]
    whole = kinds in (["PosteriorEncoder", "LinearCodeClassifier"], ["PosteriorEncoder", "ExactCodeClassifier"])
    need(whole, f"the pipeline of a FairCodeClassifier does not consist of {kinds}")
    model = FairCodeClassifier()
    encoder, method = (step.get_params(deep=False) for _, step in pipeline.steps)
    shared = {name: value for name, value in {**encoder, **method}.items() if name in model.get_params(deep=False)}
    return clone(model.set_params(**{**shared, "random_state": None}))


class TemplateState(content.State):
    """What differs between the estimator that a certified classifier was given and the model it chose."""

    step: str | None  # the name of the method in the pipeline
    strength: Strength = Field(validation_alias=AliasChoices("strength", "gamma"))  # the latter until version 0.2
    fair_code: bool = False
    max_words: content.Whole | None = None  # of a linear code, if it is not that of the model it chose

    @classmethod
    def of(cls, template: Any) -> dict[str, Any]:
        fair_code = isinstance(template, FairCodeClassifier)
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        strength = method.limit if fair_code else getattr(method, method_path(method))
        words = getattr(method, "max_words", None)
        return {"step": step, "strength": strength, "fair_code": fair_code, "max_words": words}

    def build(self, chosen: Any) -> Any:
        template = fair_code_of(chosen) if self.fair_code else clone(chosen)
        method = template if self.fair_code else content.method_of(template)
        words = {} if self.max_words is None else {"max_words": self.max_words}
        method.set_params(**{method_path(content.method_of(chosen)): self.strength}, **words)
        if isinstance(template, Pipeline) and self.step is not None:
            template.steps[-1] = (self.step, template[-1])
        return template


class CertifiedState(content.State):
    kind: Literal["certified"]
    max_disparity: content.Share | None
    max_information: content.Share | None
    max_odds_disparity: content.Share | None = None
    odds_label: bool | content.Whole | float | str | None = None
    promise: Literal["code", "class", "both"] | None = None  # these three are absent until version 0.2
    confidence: content.Share
    calibration_fraction: content.Share
    strengths: Annotated[tuple[Strength, ...], Field(min_length=1)] | None = Field(
        validation_alias=AliasChoices("strengths", "gammas")  # the latter until version 0.2
    )
    template: TemplateState | None
    chosen: Chosen = Field(discriminator="kind")
    certificate: Certificate
    path: list[dict[str, Shown]]
    output: content.Output

    @classmethod
    def of(cls, model: CertifiedClassifier) -> dict[str, Any]:
        if isinstance(model.estimator, (list, tuple)):
            problem = "A CertifiedClassifier of several candidates cannot be saved."
            raise manifest.ModelFileError(problem, remedy="Save its estimator_, if it is a model of fairbits.")
        chosen = content.describe(model.estimator_, SAVED)
        template = None if model.estimator is None else TemplateState.of(model.estimator)
        parts = {"strengths": model.path, "path": model.path_.to_dict("records"), "template": template}
        return cls.parts_of(model, chosen=chosen, **parts)

    def build(self, weights: content.Weights) -> CertifiedClassifier:
        chosen = self.chosen.build(weights)
        method: Any = content.method_of(chosen)
        whole = hasattr(method, "code_probabilities") and method.group_encoder_ is not None
        need(whole, f"a {type(method).__name__} without a code or groups cannot have been certified")
        self.check_certificate(method)
        limits = ("max_disparity", "max_information", "max_odds_disparity", "odds_label", "promise")
        settings = (*limits, "confidence", "calibration_fraction")
        model = CertifiedClassifier(None if self.template is None else self.template.build(chosen), path=self.strengths)
        model.set_params(**{name: getattr(self, name) for name in settings})
        model.certificate_, model.estimator_, model.path_ = self.certificate, chosen, pd.DataFrame(self.path)
        model.classes_, model.n_features_in_ = method.classes_, chosen.n_features_in_
        model.group_encoder_ = method.group_encoder_
        return model.set_output(transform=self.output)

    def check_certificate(self, method: Any) -> None:
        """Raise unless the certificate is about a release of the method's code."""
        release = self.certificate.release
        draws, eps, hard = release.get("draws"), release.get("eps"), release.get("hard", False)
        need(isinstance(draws, int) and draws > 0, "the release of a certificate needs a number of draws")
        need(isinstance(eps, (int, float)) and 0 <= eps < 0.5, "the eps of a certificate's release is not in [0, 0.5)")
        need(isinstance(hard, bool), "'hard' in the release of a certificate is neither true nor false")
        decides = release.get("decision", False)
        need(decides is (self.promise == "class"), "the certificate is not about what the model guarantees")
        need(any(b.label is None for b in self.certificate.bounds), "a certificate needs a bound among all rows")
        if decides:
            return
        proved, released = ("hard" if is_hard else "random" for is_hard in (hard, method.is_hard))
        differs = f"the certificate is about the {proved} code, and the model releases the {released} one"
        need(hard == method.is_hard, differs)


class FileState(content.State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: Encoder | Chosen | FairCodeState | CertifiedState = Field(discriminator="kind")


SAVED: content.Kinds = {
    **content.ENCODERS,
    Pipeline: ("steps", content.PipelineState),
    GroupEncoder: ("levels_", content.GroupsState),
    FairCodeClassifier: ("estimator_", FairCodeState),
    CertifiedClassifier: ("estimator_", CertifiedState),
}


def read_weights(file: Path, entries: dict[str, Any], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file; names, shapes and types must be those expected ("meta" will do), numbers finite."""
    size = sum(t.numel() * t.element_size() for t in expected.values())
    data = manifest.read_sealed(
        file, entries, range(size + 8, size + sum(2 * len(name) + 256 for name in expected) + 256)
    )
    with manifest.said_of(f"{file} cannot be read"):
        start = 8 + int.from_bytes(data[:8], "little")
        need(start <= len(data), "it is cut off, or not a safetensors file")
        for name in sorted(set(manifest.read_json(data[8:start], str(file))) ^ set(expected)):
            raise ValueError(f"{name[:80]!r} is missing, or not a part of the network in model.json")
        try:
            tensors = safetensors.torch.load(data)
        except (safetensors.SafetensorError, KeyError) as error:  # the latter for types that torch does not know
            raise ValueError(str(error)) from error
        for name, tensor in tensors.items():
            found, needed = ((list(t.shape), t.dtype) for t in (tensor, expected[name]))
            need(found == needed, f"{name!r} is {found}, but the network in model.json needs {needed}")
            need(bool(torch.isfinite(tensor).all()), f"{name!r} holds values that are infinite or not numbers")
    return {name: tensor.clone() for name, tensor in tensors.items()}


def save(model: Any, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write a fitted model to a folder of its own, without pickle.

    Weights are kept as safetensors and everything else as JSON, also the scikit-learn models of a `PosteriorEncoder`.
    The folder appears whole, after it has been read back, or not at all.

    The files keep settings, encoders, labels, groups, learning curves and weights; of a `CertifiedClassifier` also the
    guarantee and its certificate; of the training rows only a fingerprint of the whole table. By design they do not
    keep: `random_state` and the state of any generator (a loaded model draws fresh bits), single training rows or
    numbers that recognise them, earlier draws, `device` and `verbose`, and the parts of the network that only training
    needs.

    Parameters
    ----------
    model : a fitted method, a pipeline of encoders and a method, a `FairCodeClassifier`, a `CertifiedClassifier`, or an
        encoder
    path : the folder; it must not exist, or be empty
    overwrite : replace a model that is there; a folder with anything else in it is never replaced

    Examples
    --------
    >>> import tempfile
    >>> from fairbits import VanillaClassifier, load, save
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = VanillaClassifier(max_epochs=20, random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model")
    ...     bool((load(f"{folder}/model").predict_proba(data.X) == model.predict_proba(data.X)).all())
    True
    """
    path = Path(os.path.abspath(path))
    with manifest.said_of(f"This {type(model).__name__} cannot be saved"):
        described = {
            "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "versions": {"python": platform.python_version(), **versions()},
            "model": content.plain(content.describe(model, SAVED)),
        }
        files = {manifest.MODEL: manifest.write_json(described)}
        if (method := content.method_of(model)) is not None:
            weights = {name: t.detach().cpu().contiguous().clone() for name, t in method.net_.state_dict().items()}
            files[manifest.WEIGHTS] = safetensors.torch.save(weights)
    with manifest.said_of(f"{path} cannot be written"):
        manifest.write_folder(path, files, overwrite=overwrite, check=load)


def load(path: str | os.PathLike) -> Any:
    """Return the model that `save` wrote: it makes the same predictions, bit for bit, and draws fresh bits.

    Loading runs no code from the files. It compares the size and sha256 of every file with the manifest before it
    parses the file, and all shapes with the network's before it takes memory for weights; anything wrong raises a
    `ModelFileError` that says what. The digests find accidents, not forgeries: anyone who changes a model on purpose
    can write new digests, which gives another model but never runs code. Load models from people you trust.
    """
    folder = Path(path)
    entries, file = manifest.read_manifest(folder).files, folder / manifest.MODEL
    data = manifest.read_sealed(file, entries)
    manifest.read_json(data, str(file))  # refuses what pydantic would let pass: keys that occur twice, too many values
    with manifest.said_of(f"{file} does not describe a model that fairbits can build"):
        state = FileState.model_validate_json(data).model
        return state.build(functools.partial(read_weights, folder / manifest.WEIGHTS, entries))
