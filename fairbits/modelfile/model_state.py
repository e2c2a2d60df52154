"""Everything that can be saved as plain values, and back: methods, pipelines, certified classifiers, encoders."""

from dataclasses import asdict
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairbits.certificate import Certificate, GroupBounds
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.errors import InputError
from fairbits.estimators import CertifiedClassifier
from fairbits.modelfile.encoder_schema import TableState
from fairbits.modelfile.error import ModelFileError
from fairbits.modelfile.method_state import (
    ReadWeights,
    groups_state,
    known_method,
    method_state,
    output_of,
    plain,
    restored_groups,
    restored_method,
    set_output,
)
from fairbits.modelfile.schema import (
    CertificateState,
    CertifiedState,
    MethodState,
    ModelState,
    PipelineState,
    StepState,
    TemplateState,
)


def model_state(model: Any) -> Any:
    """Return what is kept of a fitted model, but for its weights."""
    kind = type(model)
    if _is_method(model):
        return method_state(_fitted(model, "net_"))
    if kind is Pipeline:
        return _pipeline_state(model)
    if kind is TableEncoder:
        return _table_state(_fitted(model, "features_"))
    if kind is GroupEncoder:
        return groups_state(_fitted(model, "levels_"))
    if kind is CertifiedClassifier:
        return _certified_state(_fitted(model, "estimator_"))
    inside = "; save what it chose, its best_estimator_" if hasattr(model, "best_estimator_") else ""
    raise ModelFileError(
        f"A {kind.__name__} cannot be saved{inside}: a model file holds fairbits' own methods, encoders and "
        "CertifiedClassifier, and pipelines of TableEncoder and a method."
    )


def restored_model(state: ModelState, read_weights: ReadWeights) -> Any:
    """Return the fitted model."""
    if isinstance(state, MethodState):
        return restored_method(state, read_weights)
    if isinstance(state, PipelineState):
        return _restored_pipeline(state, read_weights)
    if isinstance(state, CertifiedState):
        return _restored_certified(state, read_weights)
    return _restored_table(state) if isinstance(state, TableState) else restored_groups(state)


def method_of(model: Any) -> Any:
    """Return the method within a model, whose network has the weights; None for an encoder."""
    model = getattr(model, "estimator_", model)
    model = model[-1] if isinstance(model, Pipeline) else model
    return model if _is_method(model) else None


def _is_method(model: Any) -> bool:
    """Say whether it is a method of fairbits itself, not one of that name."""
    return type(model) is known_method(type(model).__name__)


def _fitted(model: Any, attribute: str) -> Any:
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {type(model).__name__} is not fitted; call fit first.")
    return model


# ---------------------------------------------------------------------- tables and pipelines


def _table_state(encoder: TableEncoder) -> TableState:
    state = encoder.state()
    state["parameters"] = {name: plain(value) for name, value in state["parameters"].items()}
    return TableState.model_validate({"kind": "table", **state, "output": output_of(encoder)})


def _restored_table(state: TableState) -> TableEncoder:
    return set_output(TableEncoder.from_state(state.model_dump(exclude={"kind", "output"})), state.output)


def _pipeline_state(model: Pipeline) -> PipelineState:
    wrong = [type(step).__name__ for _, step in model.steps[:-1] if type(step) is not TableEncoder]
    if wrong or not _is_method(model[-1]):
        raise ModelFileError(
            f"A pipeline with a {(wrong or [type(model[-1]).__name__])[0]} cannot be saved; a model file holds those "
            "of TableEncoder and a method of fairbits."
        )
    return PipelineState(
        kind="pipeline", steps=[StepState(name=name, model=model_state(step)) for name, step in model.steps]
    )


def _restored_pipeline(state: PipelineState, read_weights: ReadWeights) -> Pipeline:
    steps = [(step.name, restored_model(step.model, read_weights)) for step in state.steps]
    widths = [len(step.get_feature_names_out()) for _, step in steps[:-1]]
    for width, (name, step) in zip(widths, steps[1:], strict=True):
        if width != step.n_features_in_:
            raise InputError(f"step {name[:80]!r} takes {step.n_features_in_} columns and is given {width}")
    return Pipeline(steps)


# ---------------------------------------------------------------------- certified classifiers


def _certified_state(model: Any) -> CertifiedState:
    certificate = asdict(model.certificate_)
    return CertifiedState(
        kind="certified",
        max_disparity=plain(model.max_disparity),
        max_information=plain(model.max_information),
        confidence=plain(model.confidence),
        calibration_fraction=plain(model.calibration_fraction),
        gammas=[plain(gamma) for gamma in model.gammas],
        template=_template_state(model.estimator),
        chosen=model_state(model.estimator_),
        certificate=CertificateState.model_validate({**certificate, "bounds": list(certificate["bounds"])}),
        path=model.path_.to_dict("records"),
        output=output_of(model),
    )


def _template_state(template: Any) -> TemplateState | None:
    if template is None:
        return None
    if isinstance(template, Pipeline):
        return TemplateState(step=template.steps[-1][0], gamma=plain(template[-1].gamma))
    return TemplateState(step=None, gamma=plain(template.gamma))


def _restored_certified(state: CertifiedState, read_weights: ReadWeights) -> Any:
    chosen = restored_model(state.chosen, read_weights)
    method = method_of(chosen)
    if not hasattr(method, "code_probabilities") or method.group_encoder_ is None:
        raise InputError(f"a {type(method).__name__} without a code or groups cannot have been certified")
    model = CertifiedClassifier(
        _template(state.template, chosen),
        max_disparity=state.max_disparity,
        max_information=state.max_information,
        confidence=state.confidence,
        gammas=tuple(state.gammas),
        calibration_fraction=state.calibration_fraction,
    )
    content = {**dict(state.certificate), "release": state.certificate.release.model_dump()}
    bounds = tuple(GroupBounds(**b.model_dump()) for b in state.certificate.bounds)
    model.certificate_ = Certificate(**{**content, "bounds": bounds})
    model.estimator_, model.path_ = chosen, pd.DataFrame(state.path)
    model.classes_, model.n_features_in_ = method.classes_, chosen.n_features_in_
    return set_output(model, state.output)


def _template(state: TemplateState | None, chosen: Any) -> Any:
    """Return the estimator as it was given: the chosen one, not fitted, with its own gamma and name."""
    if state is None:
        return None
    template = clone(chosen)
    method_of(template).set_params(gamma=state.gamma)
    if isinstance(template, Pipeline) and state.step is not None:
        template.steps[-1] = (state.step, template[-1])
    return template
