"""The model in a folder that `fairbits fit` or `fairbits.save` wrote, and the rows of new tables as it reads them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype
from sklearn.pipeline import Pipeline

from fairbits.certificate.released_code import fitted_code
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import CategoryFeature, Feature, label
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.errors import InputError
from fairbits.modelfile import load
from fairbits.modelfile.manifest import INNER, MANIFEST, RECORD, read_record
from fairbits.tables.group_reader import GroupReader
from fairbits.tables.table_file import Pair, Table, as_fitted

TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3
Chosen = Callable[[int, int], np.ndarray]  # (first row, rows) -> which of them, (rows,) bool


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


class RowPiece(NamedTuple):
    """Rows as the method takes them, (n, features) float32, and what stands beside them in the table."""

    X: np.ndarray
    more: pd.DataFrame  # columns as the file has them
    typed: pd.DataFrame  # columns as `Table.read` returns them
    s: pd.DataFrame | None  # sensitive columns, as groups
    known: np.ndarray  # which rows of the table's piece these are: all, or those of known groups


class RowReader:
    """Reads the columns a model needs from a table; `notes` lists what was unusual, once all is read.

    With `groups` it reads rows of known groups alone. A model that reads sensitive columns needs those of every row.
    `chosen` says which of some rows to read.
    """

    def __init__(self, model: FittedModel, table: Table, *, groups: bool = False, chosen: Chosen | None = None):
        self.model, self.table, self.rows, self._chosen = model, table, 0, chosen
        seeing = any(getattr(step, "encode_sensitive", False) for step in model.pipeline)
        task = (model.record or {}).get("task", {})
        self.groups = GroupReader(model.groups, task, table, strict=not groups) if groups or seeing else None
        self._present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = defaultdict(Counter)
        table.check_columns(list(model.features), "which the model reads")

    def pieces(self, verbatim: Sequence[str] = (), typed: Sequence[str] = ()) -> Iterator[RowPiece]:
        """Yield rows as the method takes them, some columns as the file has them, and some as `Table.read` does."""
        self.table.check_columns([*verbatim, *typed])
        features, names = self.model.features, list(self.model.encoder.feature_names_in_)
        texts = [name for name, feature in features.items() if feature.kind != "number"]
        sensitive = [] if self.groups is None else self.groups.columns
        wanted = list(dict.fromkeys([*sensitive, *typed]))
        for read, beside in self._chosen_rows(self.table.pairs(list(features), wanted, texts=texts, verbatim=verbatim)):
            s, known = (None, np.ones(len(read), bool)) if self.groups is None else self.groups.piece(beside[sensitive])
            frame = pd.DataFrame({name: self._column(name, read[name], feature) for name, feature in features.items()})
            X = frame.reindex(columns=names)[known]  # transform skips what fit dropped
            self.rows += len(frame)
            rows = np.empty((0, 0), np.float32)
            if len(X):  # no -0: equal rows have equal bytes
                rows = np.asarray(fitted_code(self.model.pipeline, X, s)[1]) + np.float32(0)
            yield RowPiece(rows, read.loc[known, list(verbatim)], beside.loc[known, list(typed)], s, known)

    def _chosen_rows(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        first = 0
        for read, beside in pairs:
            mine = slice(None) if self._chosen is None else self._chosen(first, len(read))
            first += len(read)
            yield read[mine], beside[mine]

    def finish(self) -> Self:
        """Raise InputError if there was no row, or hardly any of a known group."""
        if not self.rows:
            raise InputError(f"{self.table.path} has column names but no rows.")
        if self.groups is not None:
            self.groups.check_share(self.groups.n_known, self.rows)
        return self

    def encoded(self) -> np.ndarray:
        """Return all rows as the method takes them.  (n, features) float32"""
        found = [piece.X for piece in self.pieces() if len(piece.X)]
        self.finish()
        return np.concatenate(found)

    def counts(self) -> dict[str, Any]:
        """Return what was counted so far as plain numbers and texts, for the reader of all parts of a table."""
        own = {"rows": self.rows, "present": self._present, "unseen": self._unseen}
        return own | ({} if self.groups is None else {"groups": self.groups.counts()})

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add what another reader has counted in its part of the table."""
        self.rows += counts["rows"]
        self._present.update(counts["present"])
        for name, values in counts["unseen"].items():
            self._unseen[name].update(values)
        if self.groups is not None:
            self.groups.add_counts(counts["groups"])

    @property
    def notes(self) -> list[str]:
        """Return which values the model has never seen, and which columns are empty."""
        notes = list(self.table.notes)
        for name, values in self._unseen.items():
            shown = ", ".join(repr(value[:40]) for value, _ in values.most_common(NAMED_VALUES))
            more = f" and {len(values) - NAMED_VALUES} more" if len(values) > NAMED_VALUES else ""
            notes.append(
                f"{name} has values the model has not seen in its fit: {shown}{more}, in {values.total():,} of "
                f"{self.rows:,} rows; it treats them as unknown."
            )
        empty = [name for name in self.model.features if not self._present[name]]
        return notes + [f"{name} is missing in every row; the model fills in its usual value." for name in empty]

    def _column(self, name: str, column: pd.Series, feature: Feature) -> pd.Series:
        """Return a column as the kind it was in the fit."""
        self._present[name] += int(column.notna().sum())
        if isinstance(feature, CategoryFeature):
            known = set(feature.categories)
            if known <= set(TRUTHS.values()) and not is_bool_dtype(column):  # spelt in any way
                column = column.map(lambda text: TRUTHS.get(str(text).lower(), text), na_action="ignore")
            counts = {} if feature.other else column.value_counts(sort=False)  # fit does not know merged rare values
            new = {label(value): int(count) for value, count in counts.items() if count and label(value) not in known}
            if new:
                self._unseen[name].update(new)
            return column
        return as_fitted(column, feature.kind, self.table, rows_before=self.rows)
