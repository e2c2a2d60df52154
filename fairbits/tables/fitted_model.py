"""The model in a folder that `fairbits fit` or `fairbits.save` wrote, and the rows of new tables as it reads them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.pipeline import Pipeline

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import Feature
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.errors import InputError
from fairbits.modelfile import load
from fairbits.modelfile.manifest import INNER, MANIFEST, RECORD, read_record


class Limit(NamedTuple):
    """The limits that a model is certified to, or else the bounds of its certificate, for so many draws per person."""

    promised: bool  # guaranteed
    of: tuple[str, ...]  # what keeps them, one by one: code, class
    total_variation: dict[str, float]  # of every coded sensitive column
    information: float | None  # only if it is guaranteed
    draws: int
    odds: float | None = None  # the limit within labels
    odds_label: Any = None  # the only one; None: each


@dataclass(frozen=True)
class FittedModel:
    """A pipeline from tables to codes: encoders, and the method that reads what they encode."""

    folder: Path  # of the model itself
    pipeline: Pipeline
    record: dict[str, Any] | None  # of the fit, if its file is there
    limit: Limit | None

    @property
    def place(self) -> Path:
        """The folder to open the model by."""
        return self.folder.parent if self.folder.name == INNER else self.folder

    @property
    def method(self) -> Any:
        """The last step."""
        return self.pipeline[-1]

    @property
    def encoder(self) -> TableEncoder:
        """What knows the columns of the table."""
        return inner_encoder(self.pipeline[0])

    @property
    def is_hard(self) -> bool:
        """Whether a person always has the same code."""
        return bool(getattr(self.method, "is_hard", False))

    @property
    def decides(self) -> bool:
        """Whether the class alone is certified, and not the code."""
        return self.limit is not None and self.limit.of == ("class",)

    @property
    def features(self) -> dict[str, Feature]:
        """What the model learnt about each column that it reads; it does not read those that were constant in fit."""
        pairs = zip(map(str, self.encoder.feature_names_in_), self.encoder.features_, strict=True)
        return {name: feature for name, feature in pairs if feature is not None}

    @property
    def groups(self) -> GroupEncoder:
        """The sensitive columns and their groups."""
        if self.method.group_encoder_ is None:
            problem = f"The model in {self.folder} was fitted without sensitive columns."
            raise InputError(problem, remedy="Fit one with them.")
        return self.method.group_encoder_

    def check_sensitive(self, names: Sequence[str]) -> None:
        """Raise InputError if these are not the sensitive columns of the fit."""
        own = self.groups.columns_
        if names and set(names) != set(own):
            problem = f"The model was fitted to protect {', '.join(own)}, not {', '.join(names)}."
            raise InputError(problem, remedy="Name the sensitive columns of its fit, or none.")

    def need_code(self) -> None:
        """Raise InputError if the model has no code to release."""
        if not hasattr(self.method, "decode"):
            model = f"The model in {self.folder} is a {type(self.method).__name__}"
            remedy = "Use a model that `fairbits fit` made."
            raise InputError(f"{model}, which has no code to release.", remedy=remedy)


def open_model(path: Path) -> FittedModel:
    """Load the model of a folder."""
    if not path.exists():
        raise InputError(f"There is no folder {path}.", remedy="Name the one that `fairbits fit` wrote.")
    if not path.is_dir():
        raise InputError(f"{path} is a file.", remedy="The model comes first: the folder that `fairbits fit` wrote.")
    folder = next((place for place in (path / INNER, path) if (place / MANIFEST).exists()), None)
    if folder is None:
        raise InputError(f"{path} holds no model.", remedy="Name the folder that `fairbits fit` wrote.")
    fitted = load(folder)
    inner = getattr(fitted, "estimator_", fitted)
    if not isinstance(inner, Pipeline) or not hasattr(inner_encoder(inner[0]), "feature_names_in_"):
        problem = f"The model in {folder} was made in Python without a table's column names."
        raise InputError(problem, remedy="Use it there with fairbits.load, or make one with `fairbits fit`.")
    record = read_record(folder.parent) if folder.name == INNER else None
    try:
        limit = None if record is None else _limit(record["certificate"], record["asked"])
    except (ValueError, TypeError, KeyError):
        problem = f"{folder.parent / RECORD} is not what `fairbits fit` wrote: changed or damaged."
        raise InputError(problem, remedy="Restore it, or move it away.") from None
    if hasattr(fitted, "certificate_"):
        limit = _limit(asdict(fitted.certificate_), fitted.get_params(deep=False))
    return FittedModel(folder, inner, record, limit)


def _limit(certificate: dict[str, Any], asked: dict[str, Any]) -> Limit:
    bounds = {b["column"]: b["total_variation"] for b in certificate["bounds"] if b["label"] is None}
    release, draws = certificate["release"], int(certificate["release"]["draws"])
    if certificate["promise"] is None:
        return Limit(False, ("class",) if release.get("decision") else ("code",), bounds, None, draws)
    of, hard = asked.get("promise"), release.get("hard", False)
    of = "class" if release.get("decision") else of or "both"
    parts = ("code", "class") if of == "both" and not hard else ("class",) if of == "class" else ("code",)
    limits = {} if (most := asked["max_disparity"]) is None else dict.fromkeys(bounds, float(most))
    within = asked.get("max_odds_disparity"), asked.get("odds_label")
    return Limit(True, parts, limits, asked["max_information"], draws, *within)
