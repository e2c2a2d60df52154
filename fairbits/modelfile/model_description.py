"""From a fitted model to what model.json says of it."""

import dataclasses
import math
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import CertifiedClassifier, FairCodeClassifier
from fairbits.estimators.certified import method_path
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.model_content import LEARNT, NOT_KEPT, known_method, label_parts
from fairbits.modelfile.posterior_content import learner_parts, model_parts
from fairbits.modelfile.sealed_folder import ModelFileError

# What can be saved besides methods, and the attribute that a fitted one has.
FITTED = {
    Pipeline: "steps",
    TableEncoder: "features_",
    GroupEncoder: "levels_",
    PosteriorEncoder: "learners_",
    FairCodeClassifier: "estimator_",
    CertifiedClassifier: "estimator_",
}


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


def describe(model: Any, where: str = "") -> dict[str, Any]:
    """Return what a file says of a fitted model: all but its weights and the models of scikit-learn."""
    kind = type(model)
    attribute = "net_" if kind is known_method(kind.__name__) else FITTED.get(kind)
    if attribute is None or (where and attribute not in ("net_", "features_", "learners_")):
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{where}{inside}. A model file holds fairbits' own methods, encoders, "
            "FairCodeClassifier and CertifiedClassifier, and pipelines of encoders and a method."
        )
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    if kind is Pipeline:
        steps = [{"name": name, "model": describe(step, " in a pipeline")} for name, step in model.steps]
        return {"kind": "pipeline", "steps": steps}
    if kind is GroupEncoder:
        learnt = {name: getattr(model, f"{name}_") for name in ("levels", "cells", "sizes")}
        return {"kind": "groups", "parameters": model, **learnt}
    parts = {
        TableEncoder: _table_parts,
        PosteriorEncoder: _posterior_parts,
        FairCodeClassifier: lambda model: {"kind": "fair code", "pipeline": describe(model.estimator_)},
        CertifiedClassifier: _certified_parts,
    }.get(kind, _method_parts)(model)
    return {**parts, "output": getattr(model, "_sklearn_output_config", {}).get("transform")}


def _table_parts(model: TableEncoder) -> dict[str, Any]:
    return {
        "kind": "table",
        "parameters": {**model.get_params(), "dtype": np.dtype(model.dtype).name},
        "feature_names_in": getattr(model, "feature_names_in_", None),
        "features": model.features_,
        "dropped": model.dropped_,
        "groups": _groups_or_none(model.group_encoder_),
    }


def _posterior_parts(model: PosteriorEncoder) -> dict[str, Any]:
    one = "one" if hasattr(model.estimators, "predict_proba") else "several"
    return {
        "kind": "posterior",
        "estimators": "default" if isinstance(model.estimators, str) else one,
        **{name: getattr(model, name) for name in ("cv", "columns", "encode_sensitive")},
        "grouping": model.groups,
        "learners": [learner_parts(*pair) for pair in zip(model.learners_, model.models_, strict=True)],
        "blends": [model_parts(blend) for blend in model.blends_],
        "classes": label_parts(model.classes_),
        "table": describe(model.table_encoder_),
        "groups": _groups_or_none(model.group_encoder_),
        "mean": model.mean_,
        "scale": model.scale_,
    }


def _method_parts(model: Any) -> dict[str, Any]:
    return {
        "kind": "method",
        "name": type(model).__name__,
        "settings": model,
        **{name: getattr(model, f"{name}_") for name in LEARNT},
        "feature_names_in": getattr(model, "feature_names_in_", None),
        "classes": label_parts(model.classes_),
        "groups": _groups_or_none(model.group_encoder_),
        "fingerprint": model.training_rows_.fingerprint,
    }


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
    }


def _groups_or_none(encoder: GroupEncoder | None) -> dict[str, Any] | None:
    return None if encoder is None else describe(encoder)
