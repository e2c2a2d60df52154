"""The model in a folder: as `fairbits fit` wrote it, or `fairbits.save`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.errors import InputError
from fairbits.modelfile import load

MANIFEST, AUDIT, INNER = "manifest.json", "audit.json", "model"


@dataclass(frozen=True)
class Limit:
    """What was promised of a model, or proved of it by a certificate, for the codes of so many draws per person."""

    total_variation: dict[str, float]  # of every coded sensitive column
    information: float | None  # only if promised
    of_class: bool  # the promise is for the predicted class, too
    promised: bool
    draws: int


@dataclass(frozen=True)
class FittedModel:
    """An encoder of tables and a method after it, with what is known of them."""

    folder: Path  # of the model itself
    encoder: TableEncoder
    method: Any
    record: dict[str, Any] | None  # of the fit, if it lies beside
    limit: Limit | None

    @property
    def columns(self) -> list[str]:
        """The columns the model reads; what was constant in the fit is not among them."""
        names = [str(name) for name in self.encoder.feature_names_in_]
        return [name for name, feature in zip(names, self.encoder.features_, strict=True) if feature is not None]

    @property
    def groups(self) -> GroupEncoder:
        """The sensitive columns and their groups."""
        if self.method.group_encoder_ is None:
            raise InputError(f"The model in {self.folder} was fitted without sensitive columns; fit one with them.")
        return self.method.group_encoder_

    @property
    def draws(self) -> int:
        """How many codes of a person the certificate covers; one, if there is none."""
        return 1 if self.limit is None else self.limit.draws

    def check_sensitive(self, names: Sequence[str]) -> None:
        """Raise a ValueError if sensitive columns are named that are not the ones of the fit."""
        own = self.groups.columns_
        if names and set(names) != set(own):
            raise InputError(f"The model was fitted to forget {', '.join(own)}: say --sensitive {','.join(own)}.")

    def need_code(self) -> None:
        """Raise a ValueError if there are no random bits to hand out."""
        if not hasattr(self.method, "decode"):
            raise InputError(
                f"The model in {self.folder} is a {type(self.method).__name__}, which has no random code to hand out; "
                "`fairbits fit` makes one that has."
            )


def open_model(path: Path) -> FittedModel:
    """Load the model of a folder; raise a ValueError that says what is wrong with it."""
    folder = _model_folder(path)
    fitted = load(folder)
    inner = getattr(fitted, "estimator_", fitted)
    if not isinstance(inner, Pipeline) or not hasattr(inner[0], "feature_names_in_"):
        raise InputError(
            f"The model in {folder} was made in Python without a table's column names; use it there, by fairbits.load, "
            "or make one with `fairbits fit`."
        )
    record = _record(folder.parent / AUDIT) if folder.name == INNER else None
    return FittedModel(folder, inner[0], inner[-1], record, _limit_of(fitted, record, folder.parent / AUDIT))


def _model_folder(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"There is no folder {path}; name the one that `fairbits fit` wrote (its -o).")
    if not path.is_dir():
        raise InputError(f"{path} is a file; the model comes first, the folder that `fairbits fit` wrote.")
    for folder in (path / INNER, path):
        if (folder / MANIFEST).exists():
            return folder
    raise InputError(f"{path} holds no model; name the folder that `fairbits fit` wrote (its -o).")


def _record(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_bytes())
        return record if isinstance(record["certificate"]["bounds"], list) else _damaged(file)
    except (ValueError, TypeError, KeyError):
        return _damaged(file)


def _damaged(file: Path) -> Any:
    raise InputError(f"{file} is not what `fairbits fit` wrote: changed or damaged. Put it back, or move it away.")


def _limit_of(fitted: Any, record: dict[str, Any] | None, file: Path) -> Limit | None:
    """Return what was promised, or else what the certificate bounds."""
    if hasattr(fitted, "certificate_"):
        asked = {"max_disparity": fitted.max_disparity, "max_information": fitted.max_information}
        return _limit(fitted.certificate_.to_dict(), asked)
    try:
        return None if record is None else _limit(record["certificate"], record["asked"])
    except (TypeError, KeyError):
        return _damaged(file)


def _limit(certificate: dict[str, Any], asked: dict[str, Any]) -> Limit:
    promised = certificate["promise"] is not None
    bounds = {b["column"]: b["total_variation"] for b in certificate["bounds"] if b["label"] is None}
    most = asked["max_disparity"]
    if promised:
        bounds = {} if most is None else dict.fromkeys(bounds, float(most))
    information = asked["max_information"] if promised else None
    return Limit(bounds, information, promised, promised, int(certificate["release"]["draws"]))
