"""The certificate of FARE (Jovanović et al., ICML 2023) for comparison, as published."""

from typing import Any

import numpy as np
import torch
from scipy.stats import beta
from sklearn.cluster import KMeans

from fairbits.certificate import Certificate, certify
from fairbits.information.sampling import draw_codes, relative_tables
from fairbits.information.words import group_weights

BASE, CELLS, TEST = 0.005, 0.04, 0.005  # its budgets; together 0.05
COARSE = (8, 16)  # cells of the coarse codes, few as it was designed for
HALVINGS = 20  # random halves of the rows over which its bound is averaged
PROXY_DRAWS = 10_000


def clopper_pearson(hits: np.ndarray, n: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return two-sided confidence limits of a proportion; 0 and 1 if n = 0.

    >>> [round(float(limit), 3) for limit in clopper_pearson(5, 50, 0.05)]
    [0.033, 0.218]
    """
    low = beta.ppf(delta / 2, hits, n - hits + 1)
    high = beta.isf(delta / 2, hits + 1, n - hits)
    return np.where(np.asarray(hits) > 0, low, 0.0), np.where(np.asarray(n) > hits, high, 1.0)


def fare_bound(cells: np.ndarray, s: np.ndarray, base: np.ndarray, rng: np.random.Generator) -> float:
    """Return FARE's 95 % upper confidence bound on the total variation between two groups' cells.

    Base rates by Clopper-Pearson from `base`; on one half of the rows, for every cell, a limit on the adversary's
    weighted accuracy there (Clopper-Pearson, Bonferroni over the cells); on the other half, Hoeffding's inequality for
    its mean. The budget is shared by the cells that occur in the first half, fewer than are possible, in FARE's favour.

    Parameters
    ----------
    cells : (n,) cell of each calibration row, any numbers
    s : (n,) groups 0 and 1
    base : (N,) groups of the rows for the base rates; it takes the training rows
    """
    low, high = clopper_pearson(np.sum(base == 0), len(base), BASE)
    weights = 1 / (2 * low), 1 / (2 * (1 - high))
    order = rng.permutation(len(s))
    first, second = order[: len(s) // 2], order[len(s) // 2 :]
    names, numbers = np.unique(cells[first], return_inverse=True)
    n, zeros = np.bincount(numbers), np.bincount(numbers, weights=s[first] == 0)
    low, high = clopper_pearson(zeros, n, CELLS / len(names))
    limits = np.minimum(np.maximum(weights[0] * high, weights[1] * (1 - low)), max(weights))
    place = np.minimum(np.searchsorted(names, cells[second]), len(names) - 1)
    drawn = np.where(names[place] == cells[second], limits[place], max(weights))  # a cell not met before: the worst
    width = np.ptp(np.append(limits, max(weights)) if (names[place] != cells[second]).any() else limits)
    accuracy = drawn.mean() + width * np.sqrt(np.log(1 / TEST) / (2 * len(second)))
    return float(min(1.0, 2 * accuracy - 1))


def compare(model: Any, seen, base, X, code, s, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return both bounds for the words as drawn, and for coarse cells of them.

    A cell joins the words to which the model's head gives about the same probability: k-means on the training rows.

    Parameters
    ----------
    seen, base : codes drawn for the training rows, and their groups
    X, code, s : calibration rows, the codes drawn for them, and their groups 0 and 1
    """
    words = code @ (1 << np.arange(code.shape[1], dtype=np.int64))
    releases = [(f"{len(np.unique(words))} different words", None, words)]
    for k in COARSE:
        means = KMeans(k, n_init=3, random_state=0).fit(model.decode(seen)[:, 1:])

        def cells(codes, means=means):
            return means.predict(model.decode(codes)[:, 1:])

        releases.append((f"{k} cells", cells, cells(code)))
    return [_pair(model, X, s, base, rng, *release) for release in releases]


def _pair(model, X, s, base, rng, name: str, coarse, drawn) -> dict[str, Any]:
    ours = certify(model, X, sensitive_features=s, coarse=coarse, random_state=0)
    fare = float(np.mean([fare_bound(drawn, s, base, rng) for _ in range(HALVINGS)]))
    shown = _shown(ours, model.code_probabilities(X), s)
    return {"release": name, "estimate": shown, "ours": ours.total_variation, "fare": fare}


def _shown(ours: Certificate, theta: np.ndarray, s: np.ndarray) -> float:
    """Return the total variation of the rows: where the certificate has only an upper limit, a mean over draws."""
    if ours.exact:
        return ours.bounds[0].estimated_total_variation
    p = torch.from_numpy(theta).clamp(1e-9, 1 - 1e-9)
    pair, _ = group_weights(p, torch.from_numpy(s), n_groups=2)
    codes = draw_codes(p, pair.mean(0), PROXY_DRAWS, torch.Generator().manual_seed(1))
    tables = relative_tables(codes, p, pair)
    return float(((tables[0] - tables[1]).abs() / tables.sum(0)).mean())
