"""What model.json holds of classifiers around a pipeline, and what can be saved at all."""

from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import AliasChoices, Field
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairbits.certificate import Certificate
from fairbits.encoding import GroupEncoder
from fairbits.estimators import CertifiedClassifier, FairCodeClassifier
from fairbits.estimators.certified import method_path
from fairbits.modelfile.manifest import ModelFileError
from fairbits.modelfile.model_content import (
    ENCODERS,
    GroupsState,
    Kinds,
    MethodState,
    Output,
    PipelineState,
    PosteriorState,
    Share,
    State,
    TableState,
    Weights,
    Whole,
    describe,
    method_of,
    set_columns,
)
from fairbits.storage import need

Strength = Annotated[int | float, Field(ge=0, le=1)]  # a limit to train to, or a gamma
Chosen = MethodState | PipelineState
Encoder = GroupsState | TableState | PosteriorState
Shown = bool | Whole | Annotated[float, Field(strict=False, allow_inf_nan=True)]  # "nan" is a text in the file


class FairCodeState(State):
    kind: Literal["fair code"]
    pipeline: PipelineState
    output: Output

    @classmethod
    def of(cls, model: FairCodeClassifier) -> dict[str, Any]:
        return cls.parts_of(model, pipeline=PipelineState.of(model.estimator_))

    def build(self, weights: Weights) -> FairCodeClassifier:
        pipeline = self.pipeline.build(weights)
        model = fair_code_of(pipeline)
        model.estimator_, model.classes_ = pipeline, pipeline[-1].classes_
        set_columns(model, pipeline.n_features_in_, getattr(pipeline, "feature_names_in_", None))
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


class TemplateState(State):
    """What differs between the estimator that a certified classifier was given and the model it chose."""

    step: str | None  # the name of the method in the pipeline
    strength: Strength = Field(validation_alias=AliasChoices("strength", "gamma"))  # the latter until version 0.2
    fair_code: bool = False
    max_words: Whole | None = None  # of a linear code, if it is not that of the model it chose

    @classmethod
    def of(cls, template: Any) -> dict[str, Any]:
        fair_code = isinstance(template, FairCodeClassifier)
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        strength = method.limit if fair_code else getattr(method, method_path(method))
        words = getattr(method, "max_words", None)
        return {"step": step, "strength": strength, "fair_code": fair_code, "max_words": words}

    def build(self, chosen: Any) -> Any:
        template = fair_code_of(chosen) if self.fair_code else clone(chosen)
        method = template if self.fair_code else method_of(template)
        words = {} if self.max_words is None else {"max_words": self.max_words}
        method.set_params(**{method_path(method_of(chosen)): self.strength}, **words)
        if isinstance(template, Pipeline) and self.step is not None:
            template.steps[-1] = (self.step, template[-1])
        return template


class CertifiedState(State):
    kind: Literal["certified"]
    max_disparity: Share | None
    max_information: Share | None
    max_odds_disparity: Share | None = None
    odds_label: bool | Whole | float | str | None = None
    promise: Literal["code", "class", "both"] | None = None  # these three are absent until version 0.2
    confidence: Share
    calibration_fraction: Share
    strengths: Annotated[tuple[Strength, ...], Field(min_length=1)] | None = Field(
        validation_alias=AliasChoices("strengths", "gammas")  # the latter until version 0.2
    )
    template: TemplateState | None
    chosen: Chosen = Field(discriminator="kind")
    certificate: Certificate
    path: list[dict[str, Shown]]
    output: Output

    @classmethod
    def of(cls, model: CertifiedClassifier) -> dict[str, Any]:
        if isinstance(model.estimator, (list, tuple)):
            problem = "A CertifiedClassifier of several candidates cannot be saved."
            raise ModelFileError(problem, remedy="Save its estimator_, if it is a model of fairbits.")
        chosen = describe(model.estimator_, SAVED)
        template = None if model.estimator is None else TemplateState.of(model.estimator)
        parts = {"strengths": model.path, "path": model.path_.to_dict("records"), "template": template}
        return cls.parts_of(model, chosen=chosen, **parts)

    def build(self, weights: Weights) -> CertifiedClassifier:
        chosen = self.chosen.build(weights)
        method: Any = method_of(chosen)
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


class FileState(State):
    """The whole of model.json."""

    created: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    versions: dict[str, str]
    model: Encoder | Chosen | FairCodeState | CertifiedState = Field(discriminator="kind")


SAVED: Kinds = {
    **ENCODERS,
    Pipeline: ("steps", PipelineState),
    GroupEncoder: ("levels_", GroupsState),
    FairCodeClassifier: ("estimator_", FairCodeState),
    CertifiedClassifier: ("estimator_", CertifiedState),
}
