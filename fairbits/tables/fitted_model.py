"""The model in a folder that `fairbits fit` or `fairbits.save` wrote."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import Feature
from fairbits.errors import InputError
from fairbits.modelfile import load

MANIFEST, AUDIT, INNER = "manifest.json", "audit.json", "model"


@dataclass(frozen=True)
class Limit:
    """The limits that a model is certified to, or else the bounds of its certificate, for so many draws per person."""

    total_variation: dict[str, float]  # of every coded sensitive column
    information: float | None  # only if it is guaranteed
    of_class: bool  # the guarantee is for the predicted class, too
    promised: bool
    draws: int


@dataclass(frozen=True)
class FittedModel:
    """An encoder of tables and the method that reads what it encodes."""

    folder: Path  # of the model itself
    encoder: TableEncoder
    method: Any
    record: dict[str, Any] | None  # of the fit, if its file is there
    limit: Limit | None

    @property
    def features(self) -> dict[str, Feature]:
        """What the model learnt about each column that it reads; it does not read those that were constant in fit."""
        pairs = zip(map(str, self.encoder.feature_names_in_), self.encoder.features_, strict=True)
        return {name: feature for name, feature in pairs if feature is not None}

    @property
    def columns(self) -> list[str]:
        """The columns the model reads."""
        return list(self.features)

    @property
    def groups(self) -> GroupEncoder:
        """The sensitive columns and their groups."""
        if self.method.group_encoder_ is None:
            raise InputError(
                f"The model in {self.folder} was fitted without sensitive columns.", remedy="Fit one with them."
            )
        return self.method.group_encoder_

    @property
    def draws(self) -> int:
        """How many codes of a person the certificate covers, 1 without a certificate."""
        return 1 if self.limit is None else self.limit.draws

    def check_sensitive(self, names: Sequence[str]) -> None:
        """Raise InputError if these are not the sensitive columns of the fit."""
        own = self.groups.columns_
        if names and set(names) != set(own):
            raise InputError(
                f"The model was fitted to protect {', '.join(own)}, not {', '.join(names)}.",
                remedy="Name the sensitive columns of its fit, or none.",
            )

    def need_code(self) -> None:
        """Raise InputError if the model has no random bits to release."""
        if not hasattr(self.method, "decode"):
            raise InputError(
                f"The model in {self.folder} is a {type(self.method).__name__}, which has no random code to release.",
                remedy="Use a model that `fairbits fit` made.",
            )


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
    if not isinstance(inner, Pipeline) or not hasattr(inner[0], "feature_names_in_"):
        raise InputError(
            f"The model in {folder} was made in Python without a table's column names.",
            remedy="Use it there with fairbits.load, or make one with `fairbits fit`.",
        )
    file = folder.parent / AUDIT
    try:
        record = json.loads(file.read_bytes()) if folder.name == INNER and file.exists() else None
        limit = None if record is None else _limit(record["certificate"], record["asked"])
    except (ValueError, TypeError, KeyError):
        raise InputError(
            f"{file} is not what `fairbits fit` wrote: changed or damaged.", remedy="Restore it, or move it away."
        ) from None
    if hasattr(fitted, "certificate_"):
        asked = {"max_disparity": fitted.max_disparity, "max_information": fitted.max_information}
        limit = _limit(fitted.certificate_.to_dict(), asked)
    return FittedModel(folder, inner[0], inner[-1], record, limit)


def _limit(certificate: dict[str, Any], asked: dict[str, Any]) -> Limit:
    """Return the certified limits, or else the bounds of the certificate."""
    promised = certificate["promise"] is not None
    bounds = {b["column"]: b["total_variation"] for b in certificate["bounds"] if b["label"] is None}
    most = asked["max_disparity"]
    if promised:
        bounds = {} if most is None else dict.fromkeys(bounds, float(most))
    information = asked["max_information"] if promised else None
    return Limit(bounds, information, promised, promised, int(certificate["release"]["draws"]))
