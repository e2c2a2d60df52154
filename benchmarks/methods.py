"""Seconds per epoch of every method on the same data: ``python -m benchmarks.methods``.

On one thread, with validation: the fastest of several epochs in several rounds over all methods, without the first two
epochs of a fit. Other work on the machine can make an epoch longer, never shorter.
"""

import itertools
import time
import warnings

import numpy as np
import torch

import fairbits
from benchmarks.outcomes import show
from fairbits.datasets import biased_digits, load_adult
from fairbits.estimators import fit_stack

EPOCHS, ROUNDS = 5, 3
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
    """Train one model for some epochs and return the time of the fastest."""
    times = []
    model = getattr(fairbits, name)(
        max_epochs=EPOCHS, schedule=fairbits.Schedule(min_steps=0, patience=EPOCHS), random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_stack([model], X, y, sensitive_features=s, on_epoch=lambda *_: times.append(time.perf_counter()))
    return min(after - before for before, after in itertools.pairwise(times[1:]))


def run() -> list[dict]:
    """Return the time of every method over that of the plain network, its seconds in the name."""
    torch.set_num_threads(1)
    adult, digits = load_adult(), biased_digits(0.9, "train")
    table = np.asarray(fairbits.TableEncoder().fit_transform(adult.X)), adult.y.to_numpy(), adult.s.to_numpy()
    data = {"Adult": table, "digits": (digits.X, digits.y, digits.s)}
    pairs = [(kind, name) for kind in data for name in METHODS if kind == "Adult" or name not in NOT_FOR_IMAGES]
    rounds = [{pair: seconds_per_epoch(pair[1], *data[pair[0]]) for pair in pairs} for _ in range(ROUNDS)]
    best = {pair: min(times[pair] for times in rounds) for pair in pairs}
    return [
        {
            "name": f"{kind}, {name}: {best[kind, name]:.3f} s; : plain network",
            "value": best[kind, name] / best[kind, "VanillaClassifier"],
        }
        for kind, name in pairs
    ]


if __name__ == "__main__":
    show(run())
