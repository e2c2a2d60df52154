"""The model in a folder that `fairbits fit` or `fairbits.save` wrote, and the rows of new tables as it reads them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.pipeline import Pipeline

from fairbits.certificate.released_code import fitted_code
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import CategoryFeature, Feature, absent, as_numbers, column_kind, label
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.errors import InputError
from fairbits.modelfile import load
from fairbits.modelfile.manifest import INNER, MANIFEST, RECORD, read_record
from fairbits.tables.protected_groups import UNKNOWN, as_groups, pool
from fairbits.tables.table_file import DATE_SHARE, TableFile, as_dates

TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3
KINDS: dict[str, tuple[str, Callable[[pd.Series], pd.Series], float]] = {  # words, conversion, share that may fail
    "number": ("numbers", partial(pd.to_numeric, errors="coerce"), 0.0),
    "date": ("dates such as 2026-01-31", as_dates, 1 - DATE_SHARE),
    "sensitive": ("numbers or dates such as 2026-01-31", partial(pd.to_numeric, errors="coerce"), 0.0),
}
LEAST_KNOWN = 0.5  # share of the rows of known groups; with fewer the column is probably another one


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


class KnownGroups(NamedTuple):
    """The rows of a table whose groups a model knows."""

    s: pd.DataFrame  # their sensitive columns
    known: np.ndarray  # which of all rows these are, (n,) bool
    notes: list[str]


class RowReader:
    """Reads the columns a model needs from a file; `notes` lists what was unusual, once all is read.

    With `groups` it reads the rows of these alone. A model that reads sensitive columns needs those of every row.
    """

    def __init__(self, model: FittedModel, table: TableFile, groups: KnownGroups | None = None):
        self.model, self.table, self.rows, self.groups = model, table, 0, groups
        if groups is None and any(getattr(step, "encode_sensitive", False) for step in model.pipeline):
            self.groups = _all_known(model, table)
        self._present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = defaultdict(Counter)
        table.check_columns(list(model.features), "which the model reads")

    def pieces(self, verbatim: Sequence[str] = ()) -> Iterator[tuple[np.ndarray, pd.DataFrame]]:
        """Yield rows as the method takes them, (n, features) float32, and some columns as the file has them."""
        self.table.check_columns(verbatim)
        features, names = self.model.features, list(self.model.encoder.feature_names_in_)
        texts = [name for name, feature in features.items() if feature.kind != "number"]
        for read in self.table.pieces(list(features), texts=texts, verbatim=verbatim):
            frame = pd.DataFrame({name: self._column(name, read[name], feature) for name, feature in features.items()})
            X, more, s = frame.reindex(columns=names), read[list(verbatim)], None  # transform skips what fit dropped
            if self.groups is not None:
                known, before = self.groups.known, int(self.groups.known[: self.rows].sum())
                mine = known[self.rows : self.rows + len(frame)]
                X, more, s = X[mine], more[mine], self.groups.s[before : before + mine.sum()]
            self.rows += len(frame)
            if len(X):
                # no -0: equal rows have equal bytes
                yield np.asarray(fitted_code(self.model.pipeline, X, s)[1]) + np.float32(0), more
        if not self.rows:
            raise InputError(f"{self.table.path} has column names but no rows.")

    def encoded(self) -> np.ndarray:
        """Return all rows as the method takes them.  (n, features) float32"""
        return np.concatenate([X for X, _ in self.pieces()])

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
        return _as_fitted(column, feature.kind, self.table, rows_before=self.rows)


def _as_fitted(column: pd.Series, kind: str, table: TableFile, *, rows_before: int = 0) -> pd.Series:
    """Return a column as the kind it was in the fit; raise InputError if too many of its values are of another."""
    held, converted, wrong_share = KINDS[kind]
    if column_kind(column) == "date" if kind == "date" else is_numeric_dtype(column):
        return column  # dates of a Parquet file may be durations
    values = converted(column.astype("str"))
    wrong = (column.notna() & values.isna()).to_numpy()
    if wrong.sum() > wrong_share * column.notna().sum():
        first = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"Column {column.name!r} of {table.path} held {held} when the model was fitted; in row "
            f"{rows_before + first + 1} it is {str(column.iloc[first])[:40]!r}.",
            remedy="Correct it, or leave it empty if it is not known.",
        )
    return values


def known_groups(model: FittedModel, table: TableFile) -> KnownGroups:
    """Read the sensitive columns of a model from a table; leave out rows of groups it was not fitted to."""
    encoder, task = model.groups, (model.record or {}).get("task", {})
    closed = "bins" in task  # versions 0.1 and 0.2
    cuts = task.get("bins" if closed else "cuts", {})
    table.check_columns(encoder.columns_, "which the model was fitted to protect")
    s, notes = table.read(encoder.columns_).frame, []
    known = np.ones(len(s), dtype=bool)
    for level in encoder.levels_:
        name, column = level.name, s[level.name]
        if level.edges is not None or (name in cuts and column.dtype.kind != "M"):
            column = pd.Series(as_numbers(_as_fitted(column, "sensitive", table)), name=name)
        if level.edges is None:
            groups = as_groups(column.to_frame(), cuts, closed=closed)[name].astype(object)
            column = groups.map(label, na_action="ignore").fillna(UNKNOWN)
        s[name] = column
    s = pool(s, task.get("pooled", []))
    for level in encoder.levels_:
        name = level.name
        if level.edges is not None:  # the method itself cuts these numbers into groups
            own = ~absent(s[name])
            left_out = f"{name} is missing in {(~own).sum()} rows: left out."
        else:
            s[name] = s[name].astype(object)
            own = s[name].isin(level.labels).to_numpy()
            shown = ", ".join(s[name][~own].value_counts().index[:3])
            left_out = f"{(~own).sum()} rows have a {name} that the model does not know ({shown}): left out."
        notes += [left_out] * (not own.all())
        known &= own
    if encoder.cells_ is not None and known.any():
        codes = tuple(level.codes(s.loc[known, level.name]) for level in encoder.levels_)
        cells = np.ravel_multi_index(codes, [len(level.labels) for level in encoder.levels_])
        crossed = np.isin(cells, encoder.cells_)
        if not crossed.all():
            notes.append(f"{(~crossed).sum()} rows have a combination that the model does not know: left out.")
            known[np.flatnonzero(known)[~crossed]] = False
    if known.mean() < LEAST_KNOWN:
        levels = "; ".join(f"{level.name} as {', '.join(level.labels[:8])}" for level in encoder.levels_)
        few = f"Only {known.sum()} of {len(known)} rows of {table.path}"
        remedy = "Write the groups as they were in its fit."
        raise InputError(f"{few} are of groups the model knows ({levels}).", remedy=remedy)
    return KnownGroups(s[known].reset_index(drop=True), known, notes)


def _all_known(model: FittedModel, table: TableFile) -> KnownGroups:
    """Read the sensitive columns that a model takes as inputs; raise InputError if a group is missing or unknown."""
    columns = model.groups.columns_
    table.check_columns(columns, "which this model reads: it was fitted with --encode-sensitive")
    found = known_groups(model, table)
    if not found.known.all():
        row, names = int(np.flatnonzero(~found.known)[0]) + 1, " and ".join(columns)
        problem = f"Row {row:,} of {table.path} has no {names} that the model knows, and its code depends on it."
        raise InputError(problem, remedy="Correct it, or leave such rows out.")
    return found
