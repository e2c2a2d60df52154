"""Save a fitted model to a folder of JSON and weights, and load it; model.json as a whole."""

import functools
import os
import platform
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import safetensors.torch
from pydantic import AliasChoices, Field
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairbits.certificate import Certificate
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import CertifiedClassifier, FairCodeClassifier
from fairbits.estimators.certified import method_path
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.model_content import (
    GroupsState,
    MethodState,
    Output,
    Share,
    State,
    TableState,
    Weights,
    Whole,
    copy_names,
    known_method,
    method_of,
    plain,
)
from fairbits.modelfile.posterior_content import PosteriorState
from fairbits.modelfile.sealed_folder import (
    MODEL,
    WEIGHTS,
    ModelFileError,
    need,
    read_json,
    read_manifest,
    read_sealed,
    read_weights,
    said_of,
    write_folder,
    write_json,
)
from fairbits.storage import versions

Strength = Annotated[int | float, Field(ge=0, le=1)]  # a limit to train to, or a gamma
Shown = bool | Whole | Annotated[float, Field(strict=False, allow_inf_nan=True)]  # "nan" is a text in the file


class StepState(State):
    name: Annotated[str, Field(min_length=1)]
    model: TableState | PosteriorState | MethodState = Field(discriminator="kind")


class PipelineState(State):
    kind: Literal["pipeline"]
    steps: Annotated[list[StepState], Field(min_length=1, max_length=16)]

    @classmethod
    def of(cls, pipeline: Pipeline) -> dict[str, Any]:
        steps = [{"name": name, "model": describe(step, " in a pipeline")} for name, step in pipeline.steps]
        return cls.parts_of(pipeline, steps=steps)

    def build(self, weights: Weights) -> Pipeline:
        kinds, names = [step.model.kind for step in self.steps], {step.name for step in self.steps}
        *front, last = kinds
        tables = front[:-1] if front[-1:] == ["posterior"] else front
        whole = last == "method" and set(tables) <= {"table"}
        need(whole, f"a pipeline of {kinds} does not consist of encoders and a method at the end")
        good = len(names) == len(kinds) and not any("__" in name for name in names)
        need(good, "the names of the steps must differ and hold no '__'")
        steps = [(step.name, step.model.build(weights)) for step in self.steps]
        for (_, encoder), (name, step) in pairwise(steps):
            width, needed = len(encoder.get_feature_names_out()), step.n_features_in_
            need(width == needed, f"step {name[:80]!r} takes {needed} columns and is given {width}")
        return Pipeline(steps)


class FairCodeState(State):
    kind: Literal["fair code"]
    pipeline: PipelineState
    output: Output

    @classmethod
    def of(cls, model: FairCodeClassifier) -> dict[str, Any]:
        return cls.parts_of(model, pipeline=describe(model.estimator_))

    def build(self, weights: Weights) -> FairCodeClassifier:
        pipeline = self.pipeline.build(weights)
        model = fair_code_of(pipeline)
        model.estimator_, model.classes_ = pipeline, pipeline[-1].classes_
        copy_names(pipeline[0], model)
        return model.set_output(transform=self.output)


def fair_code_of(pipeline: Pipeline) -> Any:
    """Return a FairCodeClassifier, not fitted, with the settings of the pipeline that another one had fitted."""
    kinds = [type(step).__name__ for _, step in pipeline.steps]
    whole = kinds == ["PosteriorEncoder", "ExactCodeClassifier"]
    need(whole, f"the pipeline of a FairCodeClassifier does not consist of {kinds}")
    model = FairCodeClassifier()
    encoder, method = (step.get_params(deep=False) for _, step in pipeline.steps)
    shared = {name: value for name, value in {**encoder, **method}.items() if name in model.get_params(deep=False)}
    return clone(model.set_params(**{**shared, "random_state": None}))


class TemplateState(State):
    """What differs between the estimator that a certified classifier was given and the model it chose."""

    step: str | None  # the name of the method in the pipeline
    strength: Strength = Field(validation_alias=AliasChoices("strength", "gamma"))  # the latter until version 0.2
    fair_code: bool = False

    @classmethod
    def of(cls, template: Any) -> dict[str, Any]:
        fair_code = isinstance(template, FairCodeClassifier)
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        strength = method.limit if fair_code else getattr(method, method_path(method))
        return {"step": step, "strength": strength, "fair_code": fair_code}

    def build(self, chosen: Any) -> Any:
        template = fair_code_of(chosen) if self.fair_code else clone(chosen)
        method = template if self.fair_code else method_of(template)
        method.set_params(**{method_path(method_of(chosen)): self.strength})
        if isinstance(template, Pipeline) and self.step is not None:
            template.steps[-1] = (self.step, template[-1])
        return template


class CertifiedState(State):
    kind: Literal["certified"]
    max_disparity: Share | None
    max_information: Share | None
    confidence: Share
    calibration_fraction: Share
    strengths: Annotated[tuple[Strength, ...], Field(min_length=1)] | None = Field(
        validation_alias=AliasChoices("strengths", "gammas")  # the latter until version 0.2
    )
    template: TemplateState | None
    chosen: MethodState | PipelineState = Field(discriminator="kind")
    certificate: Certificate
    path: list[dict[str, Shown]]
    output: Output

    @classmethod
    def of(cls, model: CertifiedClassifier) -> dict[str, Any]:
        template = None if model.estimator is None else TemplateState.of(model.estimator)
        parts = {"strengths": model.path, "path": model.path_.to_dict("records"), "template": template}
        return cls.parts_of(model, chosen=describe(model.estimator_), **parts)

    def build(self, weights: Weights) -> CertifiedClassifier:
        chosen = self.chosen.build(weights)
        method: Any = method_of(chosen)
        whole = hasattr(method, "code_probabilities") and method.group_encoder_ is not None
        need(whole, f"a {type(method).__name__} without a code or groups cannot have been certified")
        self.check_certificate(method)
        settings = ("max_disparity", "max_information", "confidence", "calibration_fraction")
        model = CertifiedClassifier(None if self.template is None else self.template.build(chosen), path=self.strengths)
        model.set_params(**{name: getattr(self, name) for name in settings})
        model.certificate_, model.estimator_, model.path_ = self.certificate, chosen, pd.DataFrame(self.path)
        model.classes_, model.n_features_in_ = method.classes_, chosen.n_features_in_
        return model.set_output(transform=self.output)

    def check_certificate(self, method: Any) -> None:
        """Raise unless the certificate is about a release of the method's code."""
        release = self.certificate.release
        draws, eps, hard = release.get("draws"), release.get("eps"), release.get("hard", False)
        need(isinstance(draws, int) and draws > 0, "the release of a certificate needs a number of draws")
        need(isinstance(eps, (int, float)) and 0 <= eps < 0.5, "the eps of a certificate's release is not in [0, 0.5)")
        need(isinstance(hard, bool), "'hard' in the release of a certificate is neither true nor false")
        proved, released = ("hard" if is_hard else "random" for is_hard in (hard, method.is_hard))
        differs = f"the certificate is about the {proved} code, and the model releases the {released} one"
        need(hard == method.is_hard, differs)
        need(any(b.label is None for b in self.certificate.bounds), "a certificate needs a bound among all rows")


Encoder = PosteriorState | TableState | GroupsState


class FileState(State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: Encoder | MethodState | PipelineState | FairCodeState | CertifiedState = Field(discriminator="kind")


# What can be saved besides methods: the attribute that a fitted one has, and the part of the file.
SAVED: dict[type, tuple[str, Any]] = {
    Pipeline: ("steps", PipelineState),
    TableEncoder: ("features_", TableState),
    GroupEncoder: ("levels_", GroupsState),
    PosteriorEncoder: ("learners_", PosteriorState),
    FairCodeClassifier: ("estimator_", FairCodeState),
    CertifiedClassifier: ("estimator_", CertifiedState),
}


def describe(model: Any, where: str = "") -> dict[str, Any]:
    """Return what model.json says of a fitted model, in the words of the classes above."""
    kind = type(model)
    is_method = kind is known_method(kind.__name__)
    attribute, state = ("net_", MethodState) if is_method else SAVED.get(kind, ("", None))
    if not attribute or (where and attribute not in ("net_", "features_", "learners_")):
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{where}{inside}. A model file holds fairbits' own methods, encoders, "
            "FairCodeClassifier and CertifiedClassifier, and pipelines of encoders and a method."
        )
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    return state.of(model)


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
    with said_of(f"This {type(model).__name__} cannot be saved"):
        content = {
            "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "versions": {"python": platform.python_version(), **versions()},
            "model": plain(describe(model)),
        }
        files = {MODEL: write_json(content)}
        if (method := method_of(model)) is not None:
            weights = {name: t.detach().cpu().contiguous().clone() for name, t in method.net_.state_dict().items()}
            files[WEIGHTS] = safetensors.torch.save(weights)
    with said_of(f"{path} cannot be written"):
        write_folder(path, files, overwrite=overwrite, check=load)


def load(path: str | os.PathLike) -> Any:
    """Return the model that `save` wrote: it makes the same predictions, bit for bit, and draws fresh bits.

    Loading runs no code from the files. It compares the size and sha256 of every file with the manifest before it
    parses the file, and all shapes with the network's before it takes memory for weights; anything wrong raises a
    `ModelFileError` that says what. The digests find accidents, not forgeries: anyone who changes a model on purpose
    can write new digests, which gives another model but never runs code. Load models from people you trust.
    """
    folder = Path(path)
    entries, file = read_manifest(folder), folder / MODEL
    data = read_sealed(file, entries)
    read_json(data, str(file))  # refuses what pydantic would let pass: keys that occur twice, too many values
    with said_of(f"{file} does not describe a model that fairbits can build"):
        state = FileState.model_validate_json(data).model
        return state.build(functools.partial(read_weights, folder / WEIGHTS, entries))
