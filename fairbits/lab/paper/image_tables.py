"""Biased-MNIST: accuracy where colours tell nothing, beside published numbers."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import MISSING, number
from fairbits.lab.paper.published import BIASED_MNIST
from fairbits.lab.paper.record_frames import Record, images
from fairbits.report.text_tables import Section, Table

HEAD = ("method", "rho", "accuracy, %", "each seed", "published, %", "by", "one-draw accuracy, %", "I(T;S), bits")
ONES = 0.1135  # share of the most frequent digit of MNIST's 10,000 test images
NOTES = (
    "Accuracy on test images whose colour tells nothing of the digit (rho 0.1): mean over seeds, then each of them in "
    "the order of the seeds. One draw: predicted from one drawn code per image; I(T;S) is what that code tells of the "
    "colour of a test image. The constant says 1 of every image; logistic regression is the network without hidden "
    "layers. The published numbers are of other networks, the paper's of 80 epochs.",
)


def biased_mnist(records: Iterable[Record]) -> list[Section]:
    """Return the section of all images runs, a table for each number of epochs."""
    tables = tuple(_table(int(epochs), found) for epochs, found in images(records).groupby("epochs"))
    return [Section("biased-mnist", "Biased-MNIST", tables)] if tables else []


def _table(epochs: int, found: pd.DataFrame) -> Table:
    rows = []
    for rho, part in found.groupby("rho"):
        rows += [("constant", f"{rho:g}", _percent(ONES), *[MISSING] * 5)]
        rows += [_row(str(method), rho, own) for method, own in part.groupby("method")]
        missing = sorted(set(BIASED_MNIST) - set(part.method))
        rows += [(name, f"{rho:g}", *[MISSING] * 2, *published(name, rho), *[MISSING] * 2) for name in missing]
    rows = [row for row in rows if set(row[2:]) != {MISSING}]
    word = "epoch" if epochs == 1 else "epochs"
    title = f"Biased-MNIST: accuracy on unbiased colours after {epochs} {word}"
    return Table(f"biased-mnist-{epochs}", title, HEAD, tuple(rows), NOTES)


def _row(method: str, rho: float, own: pd.DataFrame) -> tuple[str, ...]:
    each = " / ".join(_percent(value) for value in own.accuracy)
    one_draw, told = own.one_draw_accuracy.mean(), own.information.mean()
    shown = (MISSING, MISSING) if pd.isna(one_draw) else (_percent(one_draw), number(told))
    return (method, f"{rho:g}", _percent(own.accuracy.mean()), each, *published(method, rho), *shown)


def _percent(share: float) -> str:
    return number(100 * share, 2)


def published(method: str, rho: float) -> tuple[str, str]:
    """Return the published accuracy of a method and who published it."""
    accuracies, source = BIASED_MNIST.get(method, ({}, MISSING))
    return (accuracies[rho], source) if rho in accuracies else (MISSING, MISSING)
