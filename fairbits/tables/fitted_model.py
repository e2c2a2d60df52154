"""The model in a folder that `fairbits fit` or `fairbits.save` wrote, and the rows of new tables as it reads them."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype
from sklearn.pipeline import Pipeline

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import CategoryFeature, Feature, as_numbers, column_kind, label
from fairbits.encoding.group_encoder import SensitiveColumn
from fairbits.errors import InputError
from fairbits.modelfile import load
from fairbits.tables.table_file import DATE_SHARE, TableFile, as_dates
from fairbits.tables.task import UNKNOWN, as_groups

MANIFEST, AUDIT, INNER = "manifest.json", "audit.json", "model"
TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3
LEAST_KNOWN = 0.5  # share of the rows of known groups; with fewer the column is probably another one


class Limit(NamedTuple):
    """The limits that a model is certified to, or else the bounds of its certificate, for so many draws per person."""

    promised: bool  # guaranteed, and of the predicted class, too
    total_variation: dict[str, float]  # of every coded sensitive column
    information: float | None  # only if it is guaranteed
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
        limit = _limit(fitted.certificate_.to_dict(), fitted.get_params(deep=False))
    return FittedModel(folder, inner[0], inner[-1], record, limit)


def _limit(certificate: dict[str, Any], asked: dict[str, Any]) -> Limit:
    bounds = {b["column"]: b["total_variation"] for b in certificate["bounds"] if b["label"] is None}
    most, information, draws = asked["max_disparity"], asked["max_information"], int(certificate["release"]["draws"])
    if certificate["promise"] is None:
        return Limit(False, bounds, None, draws)
    return Limit(True, {} if most is None else dict.fromkeys(bounds, float(most)), information, draws)


class RowReader:
    """Reads the columns a model needs from a file; `notes` lists what was unusual, once all is read."""

    def __init__(self, model: FittedModel, table: TableFile):
        self.model, self.table, self.rows = model, table, 0
        self._present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = defaultdict(Counter)
        table.check_columns(list(model.features), "which the model reads")

    def pieces(self, verbatim: Sequence[str] = ()) -> Iterator[tuple[np.ndarray, pd.DataFrame]]:
        """Yield rows as the method takes them, (n, features) float32, and some columns as the file has them."""
        self.table.check_columns(verbatim)
        features, encoder = self.model.features, self.model.encoder
        texts = [name for name, feature in features.items() if feature.kind != "number"]
        for read in self.table.pieces(list(features), texts=texts, verbatim=verbatim):
            frame = pd.DataFrame({name: self._column(name, read[name], feature) for name, feature in features.items()})
            self.rows += len(frame)
            everything = frame.reindex(columns=list(encoder.feature_names_in_))  # transform skips what fit dropped
            X = np.asarray(encoder.transform(everything)) + np.float32(0)  # no -0: equal rows have equal bytes
            yield X, read[list(verbatim)]
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
        if feature.kind == "number":
            return _fitted_numbers(column, self.table, "numbers", rows_before=self.rows)
        if column_kind(column) == "date":  # or a duration, of a Parquet file
            return column
        dates = as_dates(column.astype("str"))
        wrong = (column.notna() & dates.isna()).to_numpy()
        if wrong.sum() > (1 - DATE_SHARE) * column.notna().sum():
            raise _other_kind(column, wrong, self.table, "dates such as 2026-01-31", self.rows)
        return dates


def _fitted_numbers(column: pd.Series, table: TableFile, held: str, *, rows_before: int = 0) -> pd.Series:
    """Return a column of a table as numbers, as it was in fit; raise InputError at the first value that is none."""
    if is_numeric_dtype(column):
        return column
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    wrong = ((column.notna() & numbers.isna()) | is_datetime64_any_dtype(column)).to_numpy()
    if wrong.any():
        raise _other_kind(column, wrong, table, held, rows_before)
    return numbers.astype(np.float64)


def _other_kind(column: pd.Series, wrong: np.ndarray, table: TableFile, held: str, rows_before: int) -> InputError:
    first = int(np.flatnonzero(wrong)[0])
    return InputError(
        f"Column {column.name!r} of {table.path} held {held} when the model was fitted; in row "
        f"{rows_before + first + 1} it is {str(column.iloc[first])[:40]!r}.",
        remedy="Correct it, or leave it empty if it is not known.",
    )


def known_groups(model: FittedModel, table: TableFile) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Read the sensitive columns of a model from a table; leave out rows of groups it was not fitted to.

    Returns the groups of the other rows, which rows these are, (n,) bool, and notes.
    """
    encoder, bins = model.groups, (model.record or {}).get("task", {}).get("bins", {})
    table.check_columns(encoder.columns_, "which the model was fitted to protect")
    read = table.read(encoder.columns_).frame
    s = pd.DataFrame({level.name: _sensitive_column(level, read[level.name], bins, table) for level in encoder.levels_})
    known, notes = np.ones(len(s), dtype=bool), []
    for level in encoder.levels_:
        values = s[level.name]
        own = values.isin(level.labels) if level.edges is None else values.notna()
        known &= own.to_numpy()
        if level.edges is not None and not own.all():
            notes.append(f"{level.name} is missing in {(~own).sum()} rows: left out.")
        elif not own.all():
            shown = ", ".join(values[~own].value_counts().index[:3])
            notes.append(f"{(~own).sum()} rows have a {level.name} that the model does not know ({shown}): left out.")
    if encoder.cells_ is not None and len(encoder.levels_) > 1 and known.any():
        codes = tuple(level.codes(s.loc[known, level.name]) for level in encoder.levels_)
        cells = np.ravel_multi_index(codes, [len(level.labels) for level in encoder.levels_])
        crossed = np.isin(cells, encoder.cells_)
        if not crossed.all():
            notes.append(f"{(~crossed).sum()} rows have a combination that the model does not know: left out.")
            known[np.flatnonzero(known)[~crossed]] = False
    if known.mean() < LEAST_KNOWN:
        levels = "; ".join(f"{level.name} as {', '.join(level.labels[:8])}" for level in encoder.levels_)
        raise InputError(
            f"Only {int(known.sum())} of {len(known)} rows of {table.path} are of groups the model knows ({levels}).",
            remedy="Write the groups as they were in its fit.",
        )
    return s[known].reset_index(drop=True), known, notes


def _sensitive_column(level: SensitiveColumn, column: pd.Series, bins: dict[str, Any], table: TableFile) -> pd.Series:
    """Return the names of groups, or numbers where the method itself cut numbers into groups."""
    if level.name not in bins and level.edges is None:
        return pd.Series([UNKNOWN if pd.isna(value) else label(value) for value in column], dtype=object)
    if level.name not in bins or column.dtype.kind != "M":
        numbers = as_numbers(_fitted_numbers(column, table, "numbers or dates such as 2026-01-31"))
        column = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
    return as_groups(column.to_frame(level.name), bins)[level.name] if level.name in bins else column
