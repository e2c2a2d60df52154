"""Sensitive columns become groups: intervals of numbers, a group for what is missing, one for all that are rare."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from fairbits.encoding import GroupEncoder
from fairbits.encoding.columns import absent, as_microseconds, as_numbers
from fairbits.encoding.columns import label as text_of
from fairbits.encoding.group_encoder import bin_labels, closed_intervals, open_intervals, quantile_cuts
from fairbits.errors import InputError

MOST_NUMBERS = 10  # a sensitive column with more distinct numbers is cut into intervals
FEWEST_NAMED = 10  # rows of a group whose name is written where it is not protected
UNKNOWN, OTHER = "(missing)", "(other)"
NEVER = 1e-14  # chance of a split; with 2**31 seeds, that of any that draws such a split is below 1e-4
MOST_UNSURE = 10  # groups that only some splits pool; with more, any two are taken to be as large as can be


def sensitive_groups(
    s: pd.DataFrame,
    least: int | None,
    n_bins: int = 4,
    deciding: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[float]], list[str]]:
    """Cut numbers and dates into intervals; missing values are a group of their own, unless they are less than `least`.

    The `deciding` rows, all by default, say where to cut. `counts` say how many rows each row stands for. Returns the
    groups of the rows to keep, which rows these are, the edges between the intervals, and notes.
    """
    cuts, notes, deciding = {}, [], np.arange(len(s)) if deciding is None else deciding
    counts = np.ones(len(s), np.int64) if counts is None else counts
    for name, column in s.items():
        own = column.iloc[deciding]
        present = own[~absent(own)]
        if present.dtype.kind in "iufM" and present.nunique() > MOST_NUMBERS:
            cuts[str(name)] = quantile_cuts(x := numbers_or_days(present), n_bins, counts[deciding][~absent(own)])
            days = np.floor(cuts[str(name)]) if column.dtype.kind == "M" else np.empty(0)
            if len(days) and days[0] > x.min() and (np.diff(days) > 0).all():  # cut at midnight where that is possible
                cuts[str(name)] = days.tolist()
            what = f"{name} holds dates and" if column.dtype.kind == "M" else str(name)
            notes.append(f"{what} was cut into {len(cuts[str(name)]) + 1} groups at its quantiles.")
    groups, known = as_groups(s, cuts), np.ones(len(s), dtype=bool)
    for name, column in groups.items() if least is not None else ():
        missing = (column == UNKNOWN).to_numpy(dtype=bool)
        if 0 < (rows := counts[missing].sum()) < least:
            known &= ~missing
            notes.append(f"{name} is missing in {rows} rows, too few for a group of their own: left out.")
        elif missing.any():
            notes.append(f"{name} is missing in {rows} rows, which are a group of their own.")
    return groups[known].reset_index(drop=True), known, cuts, notes


def pool_groups(
    s: pd.DataFrame, train: np.ndarray, least: int, wanted: int, *, crossed: bool, cut: Collection[str] = ()
) -> tuple[pd.DataFrame, np.ndarray, list[dict[str, Any]], list[str]]:
    """Pool groups, of each column or of all `crossed`, that have fewer training rows than `wanted`.

    If the pooled ones have fewer than `least` even together, their rows are left out. The groups of columns that were
    `cut` are intervals. Returns the groups of the rows to keep, which rows these are, what `pool` needs to do the same
    to other rows, and notes.
    """
    known, pooled, notes = np.ones(len(s), dtype=bool), [], []
    for columns in [list(s.columns)] if crossed else [[name] for name in s.columns]:
        cells, title = _cells(s[columns]), " x ".join(columns)
        sizes = cells[train].to_frame(index=False).value_counts()
        named = sorted(sizes.index[sizes >= wanted])
        rare = ~cells.isin(named)
        enough = rare[train].sum() >= least
        if rare.any() and len(named) + enough < 2:
            large = f"{'one' if named else 'none'} of at least {wanted} training rows"
            problem = f"{title!r} has {cells.nunique()} groups, {large}: there is nothing to compare."
            lower = "Lower --merge-small. " * (wanted > least)
            fewer = (
                "Merge values in the file, such as towns to regions" if {*columns}.isdisjoint(cut) else "Lower --bins"
            )
            remedy = f"{fewer}, use more rows, or name another column."
            raise InputError(problem, remedy=lower + remedy)
        if (UNKNOWN,) in named:
            missing = cells.isin([(UNKNOWN,)]).sum()
            notes.append(f"{title} is missing in {missing} rows, which are a group of their own.")
        if rare.any():
            about = f"their groups have fewer than {wanted} training rows"
            done = f"are pooled as {OTHER!r}: {about} each" if enough else f"are left out: {about}, too few to pool"
            listed = listed_groups(pd.Series([", ".join(cell) for cell in cells[rare]]).value_counts())
            notes.append(f"{rare.sum()} rows of {title} {done} ({listed}).")
        if rare.any() and enough:
            pooled.append({"columns": columns, "groups": [list(cell) for cell in named]})
        elif rare.any():
            known &= ~rare
    return pool(s, pooled)[known].reset_index(drop=True), known, pooled, notes


def pool(s: pd.DataFrame, pooled: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return groups with `(other)` in place of all but those that are named.

    >>> rule = {"columns": ["race"], "groups": [["A"], ["B"]]}
    >>> pool(pd.DataFrame({"race": ["A", "B", "C", "D"]}), [rule])["race"].tolist()
    ['A', 'B', '(other)', '(other)']
    """
    s = s.copy()
    for rule in pooled:
        rare = ~_cells(s[rule["columns"]]).isin([tuple(cell) for cell in rule["groups"]])
        for name in rule["columns"]:
            values = s[name].cat.categories if isinstance(s[name].dtype, pd.CategoricalDtype) else np.unique(s[name])
            names = dict.fromkeys([*map(text_of, values), OTHER])  # numbers stay in their order
            s[name] = pd.Categorical(np.where(rare, OTHER, _texts(s[name])), list(names), ordered=True)
    return s


def most_favourable(
    s: pd.DataFrame, people: np.ndarray | None, parts: Sequence[np.ndarray], least: int, wanted: int, *, crossed: bool
) -> list[np.ndarray]:
    """Return for every column, or for all `crossed`, the most people that its two smallest groups may have to certify.

    They are of the most favourable split of these rows into `parts` as large as these. Groups are pooled as by
    `pool_groups`, so the split also decides which groups there are. Intervals may all be of the same size.

    >>> s, parts = pd.DataFrame({"race": ["A"] * 450 + ["B"] * 500 + ["C"] * 50}), np.split(np.arange(1000), [560, 800])
    >>> most_favourable(s, None, parts, 17, 17, crossed=False)
    [array([159, 171])]
    """
    found, units = [], np.arange(len(s)) if people is None else people
    n, train, held = (len(np.unique(part)) for part in (units, units[parts[0]], units[parts[1]]))
    for columns in [list(s.columns)] if crossed else [[name] for name in s.columns]:
        own, best = s[columns], np.full(2, held // 2)
        if not any(column.dtype.kind in "iufM" and column.nunique() > MOST_NUMBERS for _, column in own.items()):
            cells = pd.factorize(_cells(as_groups(own, {})))[0]
            sizes = pd.DataFrame({"cell": cells, "unit": units}).drop_duplicates().groupby("cell").size().to_numpy()
            pairs = [*_smallest_two(sizes, n, train, held, least, wanted, by_row=people is None)]
            best = min(pairs, key=lambda two: (1 / np.maximum(two, 0.5)).sum(), default=best)
        found.append(best)
    return found


def _smallest_two(
    sizes: np.ndarray, n: int, train: int, held: int, least: int, wanted: int, *, by_row: bool
) -> Iterator[np.ndarray]:
    """Yield what the two smallest groups have to certify at most, for every way in which a split may pool groups."""

    def most(size: int, to_train: int) -> int:
        return max(min(int(hypergeom.isf(NEVER, n, min(size, n), held)), size - to_train * by_row), 0)

    def trained(size: int) -> tuple[int, int]:  # rows at least and at most; of people with several, nothing is known
        ends = (int(end(NEVER, n, size, train)) for end in (hypergeom.ppf, hypergeom.isf))
        return tuple(ends) if by_row else (0, len(sizes) * n)  # type: ignore[return-value]

    ends = np.array([trained(size) for size in sizes.tolist()])
    named, unsure = np.flatnonzero(ends[:, 0] >= wanted), np.flatnonzero((ends[:, 0] < wanted) & (ends[:, 1] >= wanted))
    if len(unsure) > MOST_UNSURE:
        yield np.full(2, held // 2)
        return
    for some in (part for k in range(len(unsure) + 1) for part in combinations(unsure, k)):
        own = [most(sizes[i], wanted) for i in (*named, *some)]
        rest = int(sizes.sum() - sizes[[*named, *some]].sum())
        fewest, most_of_rest = trained(rest)
        pooled, left_out = rest > 0 and most_of_rest >= least, fewest < least
        for groups in [[*own, most(rest, least)]] * pooled + [own] * left_out:
            if len(groups) > 1:
                yield np.sort(groups)[:2]


def _cells(s: pd.DataFrame) -> pd.MultiIndex:
    """Return the group of every row as a tuple of texts."""
    return pd.MultiIndex.from_arrays([_texts(s[name]) for name in s.columns])


def _texts(column: pd.Series) -> np.ndarray:
    """Return a column without missing values as texts."""
    numbers, values = pd.factorize(column)
    return np.array([text_of(value) for value in values], dtype=object)[numbers]


def listed_groups(sizes: pd.Series) -> str:
    """Name up to five groups by their rows; those of few rows are pooled, because their names may point at people.

    >>> listed_groups(pd.Series({"Greek": 12, "Faroese": 1, "Manx": 2}))
    'Greek (12 rows); 2 groups of fewer than 10 rows'
    """
    large = [f"{name} ({size} rows)" for name, size in sizes.items() if size >= FEWEST_NAMED]
    rare, more = len(sizes) - len(large), len(large) - 5
    pooled = f"{rare} group{'s' * (rare > 1)} of fewer than {FEWEST_NAMED} rows"
    return "; ".join([*large[:5], *[f"{more} more"] * (more > 0), *[pooled] * (rare > 0)])


def as_groups(s: pd.DataFrame, cuts: dict[str, list[float]], *, closed: bool = False) -> pd.DataFrame:
    """Return sensitive columns with intervals in place of numbers and dates, and a group for what is missing.

    With `closed`, `cuts` has the outer edges, too, and the intervals have the names of versions 0.1 and 0.2.

    >>> as_groups(pd.DataFrame({"age": [20, 35, None]}), {"age": [30.0, 45.0]})["age"].tolist()
    ['under 30', '30 to under 45', '(missing)']
    """
    groups = s.copy()
    for name, column in s.items():
        unknown = absent(column)
        if edges := cuts.get(str(name)):
            places = np.searchsorted(edges[1:-1] if closed else edges, numbers_or_days(column), side="right")
            names = (_date_labels if column.dtype.kind == "M" else bin_labels)(edges, closed=closed)
            texts = np.where(unknown, UNKNOWN, np.array(names)[places])
            groups[name] = pd.Categorical(texts, [*names, UNKNOWN], ordered=True)
        elif unknown.any():
            present = column[~unknown]
            names = [*map(text_of, np.unique(present) if column.dtype.kind in "iuf" else ()), UNKNOWN]
            texts = np.full(len(column), UNKNOWN, dtype=object)
            texts[~unknown] = _texts(present)
            groups[name] = pd.Categorical(texts, names, ordered=True) if len(names) > 1 else texts
    return groups


def _date_labels(cuts: list[float], *, closed: bool = False) -> list[str]:
    """Return the names of intervals of days since 1970: dates, and times of day only where a cut is not at midnight.

    >>> _date_labels([38.0, 11676.0])
    ['before 1970-02-08', '1970-02-08 to before 2001-12-20', '2001-12-20 or later']
    """
    times = (np.array(cuts) * 86_400e6).round().astype("datetime64[us]")
    for unit in ("D", "s", "us"):
        texts = np.datetime_as_string(times, unit=unit, casting="unsafe").tolist()
        if closed and len(set(texts[:-1])) == len(texts) - 1:
            return closed_intervals(texts)
        if not closed and (times.astype(f"datetime64[{unit}]") == times).all():
            return open_intervals(texts, "before", "or later")
    return bin_labels(cuts, closed=closed)


def numbers_or_days(column: pd.Series) -> np.ndarray:
    """Return numbers as they are, and dates as days since 1970."""
    return as_microseconds(column) / 86_400e6 if column.dtype.kind == "M" else as_numbers(column)


def protected(sensitive: Sequence[str], *, crossed: bool) -> list[str]:
    """Return a note on how several sensitive columns are taken: never by how many rows there are."""
    each = "Each sensitive column is taken on its own; --crossed takes their combinations."
    both = f"The combinations of {', '.join(sensitive)} are the groups; --each takes each column on its own."
    return [] if len(sensitive) < 2 else [both if crossed else each]


def group_sizes(s: pd.DataFrame, groups: str) -> dict[str, int]:
    """Return the rows of every group."""
    encoder = GroupEncoder(groups=groups, min_group_size=1).fit(s)
    titles = [f"{name}=" for name in encoder.columns_] if groups == "each" else [""]
    return {
        title + name: size
        for title, names, sizes in zip(titles, encoder.names_, encoder.sizes_, strict=True)
        for name, size in zip(names, sizes, strict=True)
    }
