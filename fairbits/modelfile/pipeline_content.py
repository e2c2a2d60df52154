"""What model.json holds of models that are made of encoders and methods, and of any model."""

import dataclasses
import math
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import AliasChoices, Field
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairbits.certificate import Certificate
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import CertifiedClassifier, FairCodeClassifier
from fairbits.estimators.certified import method_path
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.model_content import (
    NOT_KEPT,
    GroupsState,
    MethodState,
    Output,
    Share,
    State,
    TableState,
    Weights,
    Whole,
    copy_names,
    group_parts,
    known_method,
    method_of,
    method_parts,
    output_of,
    table_parts,
)
from fairbits.modelfile.posterior_content import PosteriorState, posterior_parts
from fairbits.modelfile.sealed_folder import ModelFileError, need

Strength = Annotated[int | float, Field(ge=0, le=1)]  # a limit to train to, or a gamma
Shown = bool | Whole | Annotated[float, Field(strict=False, allow_inf_nan=True)]  # "nan" is a text in the file


class StepState(State):
    name: Annotated[str, Field(min_length=1)]
    model: TableState | PosteriorState | MethodState = Field(discriminator="kind")


class PipelineState(State):
    kind: Literal["pipeline"]
    steps: Annotated[list[StepState], Field(min_length=1, max_length=16)]

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


def _pipeline_parts(pipeline: Pipeline) -> dict[str, Any]:
    steps = [{"name": name, "model": describe(step, " in a pipeline")} for name, step in pipeline.steps]
    return {"kind": "pipeline", "steps": steps}


class FairCodeState(State):
    kind: Literal["fair code"]
    pipeline: PipelineState
    output: Output

    def build(self, weights: Weights) -> FairCodeClassifier:
        pipeline = self.pipeline.build(weights)
        model = fair_code_of(pipeline)
        model.estimator_, model.classes_ = pipeline, pipeline[-1].classes_
        copy_names(pipeline[0], model)
        return model.set_output(transform=self.output)


def _fair_code_parts(model: FairCodeClassifier) -> dict[str, Any]:
    return {"kind": "fair code", "pipeline": describe(model.estimator_), "output": output_of(model)}


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


def _certified_parts(model: CertifiedClassifier) -> dict[str, Any]:
    settings = model.get_params(deep=False)
    template, strengths = settings.pop("estimator"), settings.pop("path")
    if template is not None:
        fair_code = isinstance(template, FairCodeClassifier)
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        strength = method.limit if fair_code else getattr(method, method_path(method))
        template = {"step": step, "strength": strength, "fair_code": fair_code}
    return {
        "kind": "certified",
        **{name: value for name, value in settings.items() if name not in NOT_KEPT},
        "strengths": strengths,
        "template": template,
        "chosen": describe(model.estimator_),
        "certificate": model.certificate_,
        "path": model.path_.to_dict("records"),
        "output": output_of(model),
    }


Encoder = PosteriorState | TableState | GroupsState


class FileState(State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: Encoder | MethodState | PipelineState | FairCodeState | CertifiedState = Field(discriminator="kind")


# What can be saved besides methods: the attribute that a fitted one has, and what a file says of it.
DESCRIBED: dict[type, tuple[str, Any]] = {
    Pipeline: ("steps", _pipeline_parts),
    TableEncoder: ("features_", table_parts),
    GroupEncoder: ("levels_", group_parts),
    PosteriorEncoder: ("learners_", posterior_parts),
    FairCodeClassifier: ("estimator_", _fair_code_parts),
    CertifiedClassifier: ("estimator_", _certified_parts),
}


def describe(model: Any, where: str = "") -> dict[str, Any]:
    """Return what model.json says of a fitted model, in the words of the classes above."""
    kind = type(model)
    is_method = kind is known_method(kind.__name__)
    attribute, parts = ("net_", method_parts) if is_method else DESCRIBED.get(kind, ("", None))
    if not attribute or (where and attribute not in ("net_", "features_", "learners_")):
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{where}{inside}. A model file holds fairbits' own methods, encoders, "
            "FairCodeClassifier and CertifiedClassifier, and pipelines of encoders and a method."
        )
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    return parts(model)


def plain(value: Any) -> Any:
    """Return Python's own numbers, texts, lists and dicts for those of numpy, tuples and dataclasses.

    >>> plain({"sizes": (np.int64(3), 4), "rate": np.float64(0.5), "loss": math.nan})
    {'sizes': [3, 4], 'rate': 0.5, 'loss': 'nan'}
    """
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in NOT_KEPT}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ModelFileError(f"A model file holds numbers, texts and truth values, but not {str(value)[:80]!r}.")
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
