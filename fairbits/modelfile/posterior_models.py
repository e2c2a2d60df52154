"""The scikit-learn models of a PosteriorEncoder in one file of skops: no pickle, and no types but those below.

skops checks the types in a file, not what the objects hold. scikit-learn walks trees without checking where a branch
leads, so everything a tree refers to is checked here before it is used.
"""

import copy
import io
import math
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.model_content import MAX_TEXT
from fairbits.modelfile.sealed_folder import MAX_JSON, POSTERIOR, ModelFileError, need, read_json

SCHEMA, PROTOCOL = "schema.json", 2  # of skops
MAX_POSTERIOR = 2**28  # bytes of the file
MAX_NAME = 200  # characters of a learner's name
SAVED = (LogisticRegression, HistGradientBoostingClassifier, FrozenEstimator)
FOR_TRAINING = ("_random_seed", "_feature_subsample_rng", "_scorer", "_raw_predict")  # of boosted trees
TREES = "sklearn.ensemble._hist_gradient_boosting"
# What the models above consist of: the type, and how skops reads it.
TYPES = {
    **{f"builtins.{name}": (f"{name.capitalize()}Node",) for name in ("dict", "list", "slice", "tuple")},
    "builtins.str": ("JsonNode", "TypeNode"),
    "builtins.int": ("TypeNode",),
    "numpy.ndarray": ("NdArrayNode",),
    "numpy.float64": ("TypeNode",),
    "functools.partial": ("PartialNode",),
    "sklearn.utils.validation.check_array": ("FunctionNode",),
    **{f"sklearn._loss._loss.CyHalf{name}Loss": ("LossNode",) for name in ("Binomial", "Multinomial")},
    **dict.fromkeys(
        [
            *(f"sklearn._loss.loss.Half{name}Loss" for name in ("Binomial", "Multinomial")),
            *(f"sklearn._loss.link.{name}" for name in ("Interval", "LogitLink", "MultinomialLogit")),
            "sklearn.compose._column_transformer.ColumnTransformer",
            "sklearn.frozen._frozen.FrozenEstimator",
            "sklearn.linear_model._logistic.LogisticRegression",
            "sklearn.preprocessing._encoders.OrdinalEncoder",
            "sklearn.preprocessing._function_transformer.FunctionTransformer",
            "sklearn.preprocessing._label.LabelEncoder",
            f"{TREES}.binning._BinMapper",
            f"{TREES}.gradient_boosting.HistGradientBoostingClassifier",
            f"{TREES}.predictor.TreePredictor",
        ],
        ("ObjectNode",),
    ),
}
# Those of them that skops does not trust by itself.
TRUSTED = ["functools.partial", "sklearn.utils.validation.check_array", f"{TREES}.predictor.TreePredictor"]


class PosteriorModels(NamedTuple):
    """The models of a PosteriorEncoder: each learner's as it was given and as fitted, and the blends."""

    classifiers: list[Any]
    fitted: list[list[Any]]
    blends: list[LogisticRegression]


def posterior_of(model: Any) -> PosteriorEncoder | None:
    """Return the encoder of estimates within a model, None if there is none."""
    model = getattr(model, "estimator_", model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return next((step for step in steps if isinstance(step, PosteriorEncoder)), None)


def write_models(encoder: PosteriorEncoder) -> bytes:
    """Return the models of a fitted encoder as a file, without their seeds and generators."""
    import skops.io

    models = PosteriorModels([learner.classifier for learner in encoder.learners_], encoder.models_, encoder.blends_)
    for model in models.classifiers:
        inner = getattr(model, "estimator", model) if isinstance(model, FrozenEstimator) else model
        if type(inner) not in SAVED:
            raise ModelFileError(
                f"A PosteriorEncoder with a {type(inner).__name__} cannot be saved: of the classifiers in it, a model "
                "file keeps scikit-learn's LogisticRegression and HistGradientBoostingClassifier alone.",
                remedy="Keep such a model by the means of the library that it comes from.",
            )
    data = skops.io.dumps([_for_predictions(part) for part in models])
    _check_types(_checked_members(data))
    return data


def read_models(data: bytes) -> PosteriorModels:
    """Return the models in a file, whose types, sizes and trees are checked first."""
    try:
        _check_types(_checked_members(data))
        import skops.io

        classifiers, fitted, blends = skops.io.loads(data, trusted=TRUSTED)
        return PosteriorModels(list(classifiers), [list(models) for models in fitted], list(blends))
    except (MemoryError, ModelFileError):
        raise
    except Exception as error:  # no list is complete of what damaged values make zipfile, numpy and scikit-learn raise
        raise ValueError(str(error) or type(error).__name__) from error


def check_models(encoder: Any) -> None:
    """Raise unless the models of a loaded encoder are those that its other parts need, and can be used safely."""
    try:
        _check_outcomes(encoder)
    except (MemoryError, ModelFileError):
        raise
    except Exception as error:  # as above
        raise ValueError(f"its models cannot be used: {str(error) or type(error).__name__}") from error


def _check_outcomes(encoder: Any) -> None:
    n_classes, table = len(encoder.classes_), encoder.table_encoder_
    sizes = [n_classes]
    if encoder.group_encoder_ is not None and not encoder.encode_sensitive:
        sizes += [len(names) for names in encoder.group_encoder_.names_]
    n_kept = sum(feature is not None for feature in table.features_)
    columns = {"numbers": len(table.get_feature_names_out()), "levels": n_kept + len(table.sensitive_names)}
    columns["rows"] = encoder.n_features_in_ + len(table.sensitive_names)
    ratios = [0] * len(sizes)
    for learner, models in zip(encoder.learners_, encoder.models_, strict=True):
        frozen, width = isinstance(learner.classifier, FrozenEstimator), columns[learner.sees]
        need(len(models) == (1 if frozen else len(sizes)), f"{len(models)} models of {learner.name!r}")
        for place, (model, size) in enumerate(zip(models, sizes, strict=False)):
            ratios[place] += size - 1
            known = encoder.classes_[np.isin(encoder.classes_, model.classes_)] if frozen else np.arange(size)
            _check_model(model, known, width + (n_classes - 1) * (place > 0))
    ratios = [n for n in ratios if n]
    need(len(encoder.blends_) == len(ratios), f"{len(encoder.blends_)} blends where {len(ratios)} are needed")
    for blend, size, width in zip(encoder.blends_, sizes, ratios, strict=False):
        need(type(blend) is LogisticRegression, f"a {type(blend).__name__} blends the estimates")
        _check_model(blend, np.arange(size), width)
    n_estimates = ratios[0] + n_classes * sum(ratios[1:])
    scaled = len(encoder.mean_) == len(encoder.scale_) == n_estimates
    need(scaled, f"the scales are not those of {n_estimates} estimates")
    groups = [] if encoder.group_encoder_ is None else encoder.group_encoder_.names_
    longest = sum(max(map(len, map(str, names)), default=0) for names in [encoder.classes_, *groups])
    need(n_estimates * (longest + MAX_NAME) <= MAX_TEXT, "the names of the estimates would be too long")


def _check_model(model: Any, classes: np.ndarray, n_columns: int) -> None:
    """Raise unless a model turns so many columns into probabilities of these classes; try it on two rows."""
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    need(type(inner) in SAVED[:2], f"a {type(inner).__name__} is among the models")
    need(model.n_features_in_ == n_columns, f"a model takes {model.n_features_in_} columns, not {n_columns}")
    need(np.array_equal(model.classes_, classes), "a model does not know the classes or groups")
    rows = np.zeros((2, n_columns), dtype=object)  # beside numbers, trees may take texts
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):  # of rows without names
        if isinstance(inner, HistGradientBoostingClassifier):
            check_trees(inner, rows)
        need(model.predict_proba(rows).shape == (2, len(classes)), "a model does not return probabilities")


def check_trees(model: Any, rows: np.ndarray) -> None:
    """Raise unless every branch of boosted trees leads on to another node, and asks for a column that there is."""
    front, categorical = model._preprocessor, model._bin_mapper.is_categorical_ != 0
    seen = rows if front is None else front.transform(rows)
    fixed = front is None or (type(front) is ColumnTransformer and front.n_features_in_ == rows.shape[1])
    need(fixed and seen.shape[1:] == categorical.shape, "the trees are for other columns")
    for tree in (tree for trees in model._predictors for tree in trees):
        nodes, sets, last = tree.nodes, tree.raw_left_cat_bitsets, len(tree.nodes) - 1
        need(nodes.ndim == 1 and last >= 0 and sets.shape[1:] == (8,), "a tree has no nodes, or other sets")
        places = np.flatnonzero(nodes["is_leaf"] == 0)
        inner = nodes[places]
        onward = all(((places < inner[side]) & (inner[side] <= last)).all() for side in ("left", "right"))
        column, by_set = inner["feature_idx"], inner["is_categorical"] != 0
        need(onward, "a branch of a tree leads nowhere, or back")
        need(bool(((column >= 0) & (column < len(categorical))).all()), "a tree asks for a column that there is not")
        inside = categorical[column[by_set]].all() and (inner["bitset_idx"][by_set] < len(sets)).all()
        need(bool(inside), "a tree asks for a set of categories that there is not")


def _for_predictions(part: Any) -> Any:
    if isinstance(part, list):
        return [_for_predictions(item) for item in part]
    if isinstance(part, FrozenEstimator):
        return FrozenEstimator(_for_predictions(part.estimator))
    part = copy.copy(part).set_params(random_state=None)
    for name in FOR_TRAINING:
        vars(part).pop(name, None)
    if hasattr(part, "_bin_mapper"):
        part._bin_mapper = copy.copy(part._bin_mapper).set_params(random_state=None)
    return part


def _checked_members(data: bytes) -> bytes:
    """Return the schema of a file whose members take no more memory than the file itself."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        need(len({member.filename for member in members}) == len(members), "two members have the same name")
        need(sum(member.file_size for member in members) <= len(data), "its members are larger than the file")
        for member in members:
            if member.filename != SCHEMA:
                _check_array(archive.read(member), member.filename)
        need(archive.getinfo(SCHEMA).file_size <= MAX_JSON, f"{SCHEMA} is too large")
        return archive.read(SCHEMA)


def _check_array(data: bytes, name: str) -> None:
    """Raise unless a member is a numpy array of plain values, of as many bytes as its header says."""
    opened = io.BytesIO(data)
    need(np.lib.format.read_magic(opened) == (1, 0), f"{name[:80]!r} is not an array")
    shape, _, dtype = np.lib.format.read_array_header_1_0(opened)
    size = math.prod(shape) * dtype.itemsize
    need(not dtype.hasobject and opened.tell() + size == len(data), f"{name[:80]!r} does not hold the array it says")


def _check_types(schema: bytes) -> None:
    content = read_json(schema, f"{SCHEMA} in {POSTERIOR}")
    need(content.get("protocol") == PROTOCOL, f"skops wrote it by protocol {str(content.get('protocol'))[:20]}")
    for module, name, loader in _objects(content):
        known = loader in TYPES.get(f"{module}.{name}", ())
        need(known, f"it holds a {str(module)[:80]}.{str(name)[:80]}, which is no part of a model of fairbits")


def _objects(tree: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield module, name and loader of everything that a schema describes."""
    if isinstance(tree, dict) and tree.keys() & {"__class__", "__module__", "__loader__"}:
        yield tree.get("__module__"), tree.get("__class__"), tree.get("__loader__")
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _objects(item)
