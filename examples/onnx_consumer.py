"""Compute one code per row of a table and predict from it, without torch, scikit-learn or fairbits.

Needs ``pip install numpy onnxruntime``. Usage: python examples/onnx_consumer.py FOLDER TABLE.csv, with the folder that
``fairbits.export_onnx(model, FOLDER)`` wrote for a model with a code, and a table whose first line names the columns.
"""

import csv
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession


def numbers(text: str, column: dict) -> list[float]:
    """Return one cell as numbers, by the recipe in export.json; an empty cell is missing."""
    if column["kind"] == "category":
        known = [text == category for category in column["categories"]]
        other, missing = [text != "" and not any(known)], [text == ""]
        return known + other * column["other"] + missing * column["missing"]
    value = float(text or "nan")  # a date is in seconds since 1970
    seen = math.isfinite(value)
    scaled = [((value if seen else column["fill"]) - column["center"]) / column["scale"]] if column["scale"] else []
    return scaled + [not seen] * column["indicator"]


def level(text: str, column: dict) -> float:
    """Return one cell as one number for trees, by the recipe in export.json."""
    if column["kind"] == "category":
        places = {category: place for place, category in enumerate(column["categories"])}
        other = len(places) if column["other"] and text else math.nan
        return places.get(text, other)
    value = float(text or "nan")
    return value if math.isfinite(value) else math.nan


def read_rows(file: str, export: dict) -> dict[str, np.ndarray]:
    """Return the rows of a table as the encoder takes them: x (n, features), and levels (n, columns) for trees."""
    with open(file, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if export["table"] is None:
        return {"x": np.array([[float(row[name]) for name in export["x"]["names"]] for row in rows], np.float32)}
    columns = [column for column in export["table"]["columns"] if column["kind"] != "dropped"]
    x = np.array([[v for c in columns for v in numbers(row[c["name"]], c)] for row in rows], np.float32)
    if export["levels"] is None:
        return {"x": x}
    return {"x": x, "levels": np.array([[level(row[c["name"]], c) for c in columns] for row in rows], np.float64)}


def uniforms(n: int, m: int) -> np.ndarray:
    """Return fresh numbers in [0, 1), 24 random bits each: float32 holds them exactly, and none is rounded to 1."""
    return (np.frombuffer(os.urandom(4 * n * m), np.uint32) >> 8).reshape(n, m).astype(np.float32) / 2**24


def main(folder: str, file: str) -> None:
    export = json.loads(Path(folder, "export.json").read_text())
    encoder, head = (InferenceSession(str(Path(folder, name))) for name in ("encoder.onnx", "head.onnx"))
    inputs = read_rows(file, export)
    if "noise" in export:  # a random code; a hard one needs none
        inputs["noise"] = uniforms(len(inputs["x"]), len(export["bits"]))
    (bits,) = encoder.run(None, inputs)  # share only these
    (probabilities,) = head.run(None, {"bits": bits})
    for code, p in zip(bits, probabilities, strict=True):
        print("".join(map(str, code)), export["classes"][p.argmax()], f"{p.max():.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
