"""Biased-MNIST: accuracy on images whose colour is random, beside published numbers, and samples of the images."""

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import lazy_loader
import numpy as np
import pandas as pd

from fairbits import datasets
from fairbits.datasets.mnist import mnist_is_kept
from fairbits.lab.paper.method_pictures import dots
from fairbits.lab.paper.paper_style import finish
from fairbits.lab.paper.record_frames import MISSING, NOTES, PUBLISHED, Record, number, of_kind
from fairbits.report.page import Section
from fairbits.report.wording import Table

alt = lazy_loader.load("altair")
COLUMNS = ["epochs", "held_out", "method", "rho", "seed", "accuracy"]
CODE = ["one_draw_accuracy", "information", "permuted_information"]  # of the methods with a code
ACCURACY, TITLE = "biased-mnist-accuracy", "Biased-MNIST: accuracy on unbiased colours"
HEAD = ("method", "rho", "accuracy, %", "each seed", "published, %", "by", "one-draw accuracy, %")
BITS = ("I(T;S), bits", "the same, colours permuted")
SHOWN = 0.06  # of accuracy, behind the best
ONES = 0.1135  # share of the most frequent digit of MNIST's 10,000 test images
RHO, ROWS = 0.99, 5  # images of each digit
ENLARGED, GAP, WIDTH = 3, 2, 480  # times; pixels between images, before that; pixels of a panel


def biased_mnist(records: Iterable[Record]) -> list[Section]:
    """Return the section of all images runs, a table for each number of epochs and of held-out training digits."""
    groups = _accuracies(records).groupby(COLUMNS[:2])
    tables = tuple(_table(epochs, held_out, found) for (epochs, held_out), found in groups)
    return [Section("biased-mnist", "Biased-MNIST", tables), Section(ACCURACY, TITLE)] if tables else []


def _accuracies(records: Iterable[Record]) -> pd.DataFrame:
    rows = [
        {"held_out": 0, **run, **result, "method": run["name"]}
        for run, result in ((r["run"], r["result"]) for r in of_kind(records, "images"))
    ]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *CODE]).astype(dict.fromkeys([COLUMNS[-1], *CODE], float))
    return frame.sort_values(COLUMNS[:-1], ignore_index=True)


def accuracy_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw the accuracies of the longest fits, a row of dots per method and a column per rho."""
    found = _accuracies(records)
    found = found[(found.held_out == 0) & (found.epochs == found.epochs.max())]
    near = found[found.accuracy > found.groupby("rho").accuracy.transform("max") - SHOWN]
    if len(near):
        wide = near.assign(row=near.method, **{f"at{i}": near.accuracy.where(near.rho == r) for i, r in _rhos(near)})
        order = wide.groupby("method").accuracy.mean().sort_values(ascending=False, kind="stable").index
        chart = dots(wide, order, {f"at{i}": f"rho {rho:g}" for i, rho in _rhos(near)})
        yield ACCURACY, finish(chart, TITLE, *NOTES["images"]["figure"])


def _rhos(found: pd.DataFrame) -> Iterable[tuple[int, float]]:
    return enumerate(sorted(set(found.rho)))


def _table(epochs: int, held_out: int, found: pd.DataFrame) -> Table:
    rows, width = [], len(HEAD) + len(BITS)
    for rho, part in found.groupby("rho"):
        rows += [("constant", f"{rho:g}", _percent(ONES), *[MISSING] * (width - 3))] if not held_out else []
        order = part.groupby("method").accuracy.mean().sort_values(ascending=False, kind="stable").index
        rows += [_row(str(method), rho, part[part.method == method]) for method in order]
        missing = sorted(set(PUBLISHED["biased_mnist"]) - set(part.method)) if not held_out else []
        rows += [(name, f"{rho:g}", *[MISSING] * 2, *_published(name, rho), *[MISSING] * 3) for name in missing]
    rows = [row for row in rows if set(row[2:]) != {MISSING}]
    name, title = f"biased-mnist-{epochs}", f"Biased-MNIST: accuracy on unbiased colours after {epochs} epochs"
    if held_out:
        name, title = f"{name}-held-out", f"{title}, {held_out:,} training digits left out and recoloured"
    return Table(name, title.replace(" 1 epochs", " 1 epoch"), (*HEAD, *BITS), tuple(rows), (NOTES["images"]["table"],))


def _row(method: str, rho: float, own: pd.DataFrame) -> tuple[str, ...]:
    each = " / ".join(_percent(value) for value in own.accuracy)
    one_draw, *bits = own[CODE].mean()
    shown = [MISSING if np.isnan(bits).any() else number(value) for value in bits]  # neither without the other
    drawn = MISSING if pd.isna(one_draw) else _percent(one_draw)
    return (method, f"{rho:g}", _percent(own.accuracy.mean()), each, *_published(method, rho), drawn, *shown)


def _percent(share: float) -> str:
    return number(100 * share, 2)


def _published(method: str, rho: float) -> tuple[str, str]:
    """Return the published accuracy of a method and who published it."""
    found = PUBLISHED["biased_mnist"].get(method, {})
    return (found[f"{rho:g}"], found["by"]) if f"{rho:g}" in found else (MISSING, MISSING)


def sample_images(folder: Path) -> list[Path]:
    """Draw biased training and unbiased test images; return the files.

    MNIST is not downloaded for a picture: where it is not kept, the digits of scikit-learn take its place.
    """
    from fairbits.report.charts import save_chart

    kept = mnist_is_kept()
    source = datasets.biased_mnist if kept else datasets.biased_digits
    train, test = source(RHO, "train", n=1000), source(0.1, "test", n=500)
    panels = [
        _panel(train, f"Training, rho {RHO:g}: the colour goes with the digit"),
        _panel(test, "Test: the colour is chosen at random"),
    ]
    chart = finish(alt.hconcat(*panels, spacing=30), "Biased-MNIST" if kept else "Biased digits")
    return save_chart(chart, folder, "biased-mnist")


def _panel(data: datasets.BiasedImages, title: str) -> Any:
    sheet = contact_sheet(data.X, data.y).repeat(ENLARGED, axis=0).repeat(ENLARGED, axis=1)
    url = "data:image/png;base64," + base64.b64encode(png(sheet)).decode()
    height, place = WIDTH * sheet.shape[0] / sheet.shape[1], {"x": alt.value(0), "y": alt.value(0)}
    chart = alt.Chart(pd.DataFrame({"url": [url]})).mark_image(width=WIDTH, height=height, align="left", baseline="top")
    return chart.encode(url="url:N", **place).properties(
        width=WIDTH, height=height, title=title, view=alt.ViewConfig(stroke=None)
    )


def contact_sheet(images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the first images (n, 3, height, width) of each digit as one (height, width, 3), a column per digit."""
    columns = [images[labels == digit][:ROWS].transpose(0, 2, 3, 1) for digit in range(10)]
    spaced = [np.pad(column, ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=255) for column in columns]
    return np.concatenate([column.reshape(-1, *column.shape[2:]) for column in spaced], axis=1)


def png(pixels: np.ndarray) -> bytes:
    """Return the file of an image (height, width, 3) of uint8."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, _ = pixels.shape
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # every line starts with its filter: 0, none
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")
