"""The settings that the searches chose, beside the paper's."""

from typing import Any

from fairbits.lab.paper.estimates_of_folds import MISSING
from fairbits.lab.paper.published import BEST_SETTINGS
from fairbits.lab.paper.record_frames import FOLD, Record, method_of, of_kind
from fairbits.report.text_tables import Table

FIRST = ("gamma", "alpha", "beta", "depth", "width", "batch_size", "learning_rate", "weight_decay")
WORDS = {"depth": "hidden layers", "width": "layer size"}
STATES = ("complete", "pruned", "failed")
NOTE = (
    "The best trial's settings of each external fold, in the order of the folds; trials are summed over folds. Rows "
    "marked (paper) are the table of its supplement."
)


def settings_table(dataset: str, records: list[Record]) -> Table:
    """Return the chosen settings of every method of a dataset, one value per fold."""
    searches = sorted(of_kind(records, "search"), key=lambda r: [r["run"][name] for name in FOLD])
    methods = sorted({method_of(record["run"]) for record in searches})
    names = _names(searches)
    rows = []
    for method in methods:
        own = [record["result"] for record in searches if method_of(record["run"]) == method]
        rows.append((method, *(_each([r["best"].get(name) for r in own]) for name in names), _trials(own)))
        rows += _paper_row(dataset, method, names)
    head = ("method", *(WORDS.get(name, name.replace("_", " ")) for name in names))
    title = f"{dataset}: settings chosen by the search"
    return Table(f"{dataset}-settings", title, (*head, f"trials {' / '.join(STATES)}"), tuple(rows), (NOTE,))


def _names(searches: list[Record]) -> list[str]:
    """Return the settings that were searched: those of many methods first."""
    found = {name for record in searches for name in record["result"]["best"]}
    return [*(name for name in FIRST if name in found), *sorted(found - set(FIRST))]


def _each(values: list[Any]) -> str:
    """Return the values of all folds.

    >>> _each([0.16049, 1416.13, 300, None]), _each([None, None])
    ('0.16 / 1416 / 300 / –', '–')
    """
    texts = [_value(value) for value in values]
    return MISSING if set(texts) == {MISSING} else " / ".join(texts)


def _value(value: Any) -> str:
    if value is None:
        return MISSING
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _trials(results: list[dict[str, Any]]) -> str:
    return " / ".join(str(sum(result["trials"][state] for result in results)) for state in STATES)


def _paper_row(dataset: str, method: str, names: list[str]) -> list[tuple[str, ...]]:
    paper = BEST_SETTINGS.get((dataset, method))
    return [(f"{method} (paper)", *(_each([paper.get(name)]) for name in names), MISSING)] if paper else []
