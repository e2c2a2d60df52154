"""Seconds per epoch of every method on the same data: ``python -m benchmarks.methods``.

Validation included, one thread, the median of some epochs after the first two; all methods in one run, so that their
ratios mean something on a busy machine too.
"""

import itertools
import statistics
import time
import warnings

import numpy as np
import torch

import fairbits
from benchmarks.records import print_records
from fairbits.datasets import biased_digits, load_adult
from fairbits.estimators import fit_stack

EPOCHS = 7
METHODS = (
    "VanillaClassifier",
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "AdversarialClassifier",
    "HSICClassifier",
    "ParityClassifier",
    "VFAEClassifier",
    "VIBClassifier",
    "LFRClassifier",
    "RUBiClassifier",
    "LearnedMixinClassifier",
    "ReBiasClassifier",
    "EnDClassifier",
)
NOT_FOR_IMAGES = ("VFAEClassifier", "VIBClassifier", "LFRClassifier")  # they model every pixel


def seconds_per_epoch(name: str, X: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
    """Train one model for some epochs and return the median time of one."""
    times = []
    model = getattr(fairbits, name)(max_epochs=EPOCHS, min_steps=0, patience=EPOCHS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_stack([model], X, y, sensitive_features=s, on_epoch=lambda *_: times.append(time.perf_counter()))
    return statistics.median(after - before for before, after in itertools.pairwise(times[1:]))


def run() -> list[dict]:
    """Return the seconds of every method, and beside them the ratio to the plain network's."""
    torch.set_num_threads(1)
    adult, digits = load_adult(), biased_digits(0.9, "train")
    table = np.asarray(fairbits.TableEncoder().fit_transform(adult.X)), adult.y.to_numpy(), adult.s.to_numpy()
    data = {"Adult": table, "digits": (digits.X, digits.y, digits.s)}
    records = []
    for (kind, part), name in itertools.product(data.items(), METHODS):
        if kind == "Adult" or name not in NOT_FOR_IMAGES:
            records.append({"name": f"{kind}, {name}", "value": seconds_per_epoch(name, *part), "unit": "s"})
    plain = {kind: next(r["value"] for r in records if r["name"] == f"{kind}, VanillaClassifier") for kind in data}
    for record in records:
        record["ratio"] = record["value"] / plain[record["name"].split(",")[0]]
    return records


if __name__ == "__main__":
    found = run()
    for kind in ("value", "ratio"):
        print_records([{**r, "value": r[kind], "unit": "s" if kind == "value" else ": plain"} for r in found])
