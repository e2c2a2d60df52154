"""Samples of Biased-MNIST: training images whose colour gives the digit away, test images whose colour does not."""

import base64
import struct
import zlib
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from fairbits.datasets import BiasedImages, biased_digits, biased_mnist
from fairbits.datasets.mnist import mnist_is_kept
from fairbits.lab.paper.charts.paper_style import finish
from fairbits.report.charts import save_chart

RHO, ROWS = 0.99, 5  # images of each digit
ENLARGED, GAP, WIDTH = 3, 2, 480  # times; pixels between images, before that; pixels of a panel


def sample_images(folder: Path) -> list[Path]:
    """Draw biased training and unbiased test images; return the files.

    MNIST is not fetched for a picture: where it is not kept, the digits shipped with scikit-learn stand in.
    """
    source = biased_mnist if mnist_is_kept() else biased_digits
    train, test = source(RHO, "train", n=1000), source(0.1, "test", n=500)
    panels = [
        _panel(train, f"Training, rho {RHO:g}: the colour goes with the digit"),
        _panel(test, "Test: the colour is chosen at random"),
    ]
    chart = finish(alt.hconcat(*panels, spacing=30), "Biased-MNIST" if source is biased_mnist else "Biased digits")
    return save_chart(chart, folder, "biased-mnist")


def _panel(data: BiasedImages, title: str) -> alt.Chart:
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
    height, width, _ = pixels.shape
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # every line starts with its filter: 0, none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
