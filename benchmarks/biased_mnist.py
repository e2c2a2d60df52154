"""Biased-MNIST, every method with the same network: ``python -m benchmarks.biased_mnist [--epochs 10] [RHO ...]``.

Trained on digits whose colour goes with the label in a share rho of the images, with the colours known in training;
accuracy on the test digits in colours that tell nothing. One line of results/biased-mnist/RHO.jsonl per fit; what has
its line is not run again, so the command may be killed and repeated, or run for the two rho in parallel.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track

import fairbits
from benchmarks.jobs import key, publish, run_missing
from fairbits.datasets import biased_mnist

FOLDER = Path(__file__).parent.parent / "results" / "biased-mnist"
RHOS = (0.99, 0.995)
NETWORK: dict[str, Any] = {"channels": (16, 32, 64), "hidden_sizes": (), "batch_size": 256}
SCHEDULE: dict[str, Any] = {"min_steps": 0, "warmup_epochs": 1, "validation_fraction": 0.02, "selection": "last"}
OURS = {"code_size": 64, "prior_correction": True}
METHODS: dict[str, tuple[str, dict[str, Any], int]] = {  # name -> class, settings, seeds
    "Vanilla": ("VanillaClassifier", {}, 1),
    "RUBi": ("RUBiClassifier", {}, 1),
    "LearnedMixin+H": ("LearnedMixinClassifier", {}, 1),
    "ReBias": ("ReBiasClassifier", {}, 1),
    "EnD": ("EnDClassifier", {}, 1),
    "BinaryBernoulli, label prior alone": ("BinaryBernoulliClassifier", {"gamma": 0.0, **OURS}, 1),
    "BinaryBernoulli": ("BinaryBernoulliClassifier", {"gamma": 0.005, "leakage_rows": "balanced", **OURS}, 3),
    "BinaryMI": ("BinaryMIClassifier", {"gamma": 0.02, "leakage_rows": "balanced", **OURS}, 1),
}
# Bahng et al. (2020) and the AAAI-23 paper, on unbiased colours; bias-balanced learning as the aim.
PAPER = {0.99: 0.960, 0.995: 0.906}


def jobs(rhos: list[float], epochs: int) -> list[dict[str, Any]]:
    """List the fits: the methods of one seed first."""
    fits = [(name, rho, seed) for name, (_, _, seeds) in METHODS.items() for rho in rhos for seed in range(seeds)]
    return [
        {"rho": rho, "method": name, "settings": METHODS[name][1], "epochs": epochs, "seed": seed}
        for name, rho, seed in sorted(fits, key=lambda fit: fit[2])
    ]


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Fit one model and return its accuracy on unbiased colours, and what it took."""
    train, test = biased_mnist(job["rho"], "train", random_state=job["seed"]), biased_mnist(0.1, "test")
    settings = {**NETWORK, **SCHEDULE, **job["settings"], "max_epochs": job["epochs"], "random_state": job["seed"]}
    model = getattr(fairbits, METHODS[job["method"]][0])(**settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.X, train.y, sensitive_features=train.s)
    seconds = time.perf_counter() - start
    scores = {"accuracy": float(np.mean(model.predict(test.X) == test.y)), "seconds": round(seconds, 1)}
    if hasattr(model, "decode"):
        scores["one_draw_accuracy"] = float(np.mean(model.sampled_proba(test.X).argmax(1) == test.y))
        scores["information"] = model.information(test.X, sensitive_features=test.s)
    return {"scores": scores}


def tables(records: list[dict[str, Any]], epochs: int) -> list[str]:
    """Return the lines of the table: one row per method."""
    lines = [
        f"Biased-MNIST: accuracy on unbiased colours after {epochs} epochs, mean (each seed), one network for all; "
        "paper: BinaryBernoulli's 0.960 and 0.906. Information: I(T;S) of one draw on the unbiased test images, bits.",
        "",
        "| method | rho 0.990 | rho 0.995 | from one draw | information | seconds per fit |",
        "|---|---|---|---|---|---|",
    ]
    for name in METHODS:
        cells = [_cell(records, name, rho, "accuracy") for rho in RHOS]
        rest = [
            " / ".join(_cell(records, name, rho, field) for rho in RHOS)
            for field in ("one_draw_accuracy", "information")
        ]
        seconds = [r["scores"]["seconds"] for r in records if r["method"] == name]
        lines.append(f"| {name} | {' | '.join(cells + rest)} | {np.mean(seconds) if seconds else 0:.0f} |")
    return lines


def _cell(records: list[dict[str, Any]], name: str, rho: float, field: str) -> str:
    values = [r["scores"][field] for r in records if (r["method"], r["rho"]) == (name, rho) and field in r["scores"]]
    each = f" ({', '.join(f'{v:.4f}' for v in values)})" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{each}" if values else ""


def limits(records: list[dict[str, Any]]) -> dict[str, bool]:
    """Say which of the paper's figures a binary method reaches, as a mean over its seeds."""
    found = {}
    for rho, figure in PAPER.items():
        means = [
            np.mean([r["scores"]["accuracy"] for r in records if (r["method"], r["rho"]) == (name, rho)] or [0])
            for name in ("BinaryBernoulli", "BinaryMI")
        ]
        found[f"rho {rho}: at least {figure}"] = max(means) >= figure
    return found


def main() -> None:
    """Run the fits that have no record, then write the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rho", nargs="*", type=float, default=list(RHOS))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--method", choices=list(METHODS), help="only this one")
    asked = parser.parse_args()
    wanted = [job for job in jobs(asked.rho, asked.epochs) if asked.method in (None, job["method"])]
    torch.set_num_threads(1)
    done = run_missing(wanted, run, FOLDER, file_by="rho", progress=lambda j: track(j, "fits"))
    records = [done[key(job)] for job in jobs(list(RHOS), asked.epochs) if key(job) in done]
    publish(FOLDER, tables(records, asked.epochs), limits(records))


if __name__ == "__main__":
    main()
