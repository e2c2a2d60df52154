"""How far the difference of two groups' means may fall below its expectation; docs/certificate.md has the proofs.

Every number here depends on the groups' rows and on delta alone, before anybody looks at the values. Suprema over the
unknown laws are proved: the laws are cut into cells, every cell has an upper bound, and cells whose bound is too large
are cut again.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

HOEFFDING, BERRY_ESSEEN, CVAR, EXACT = "Hoeffding", "Berry-Esseen and Bernstein", "CVaR of binomials", "exact binomial"
SHEVTSOVA = 0.5583  # Berry-Esseen for independent summands (Shevtsova 2013)
ROUNDING = 1e-7  # added to every probability: truncated tails and double precision
DELTAS = (1e-5, 0.3)  # from where to where these bounds are worth their time; Hoeffding holds everywhere
TAIL = 1e-8  # of a binomial law, left out
PRECISION = 0.005  # of a limit, relative to the slack of the normal approximation
MOST_EXACT = 100_000  # rows of a group, for exact limits
NEARLY_NORMAL = 1.02  # so close to the normal approximation that an exact limit is not worth its time
MOST_CELLS = 40_000
MOST_CVAR, ENOUGH_CVAR = 1000, 20_000  # rows of the smaller group, for the CVaR, and of the larger one that count


def hoeffding_deviation(rows: np.ndarray, share: float, delta: float) -> float:
    """Return how far a mean over groups, sum_s share * mean_s(Z) with Z in [0, 1], may fall below its expectation.

    Hoeffding's inequality at one fixed event: share sqrt(sum_s 1/n_s ln(1/delta) / 2).

    >>> round(hoeffding_deviation(np.array([5000, 5000]), 1.0, 0.05), 4)
    0.0245
    """
    if (rows == 0).any():
        return math.inf
    return float(share) * math.sqrt(float(np.sum(1 / rows)) * math.log(1 / delta) / 2)


def normal_deviation(n: int, other: int, delta: float) -> float:
    """Return the deviation of two fair coins by the normal approximation: what no proved one is below for long."""
    return -float(ndtri(delta)) * math.sqrt(1 / n + 1 / other) / 2


def deviation(rows: np.ndarray, delta: float) -> tuple[float, str]:
    """Return the deviation for values anywhere in [0, 1] that is the shortest of three, and its name; rows (2,).

    >>> length, name = deviation(np.array([5421, 10860]), 0.05)
    >>> round(length, 4), name
    (0.0141, 'Berry-Esseen and Bernstein')
    """
    n, other = sorted(rows.tolist())
    return _deviation(n, other, delta) if n else (math.inf, HOEFFDING)


@lru_cache(4096)
def _deviation(n: int, other: int, delta: float) -> tuple[float, str]:
    found = [(hoeffding_deviation(np.array([n, other]), 1.0, delta), HOEFFDING)]
    if DELTAS[0] <= delta <= DELTAS[1]:
        found.append((berry_esseen_deviation(n, other, delta), BERRY_ESSEEN))
        z = float(ndtri(delta))
        likely = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / delta * math.sqrt(1 / n + 1 / other) / 2
        if n <= MOST_CVAR and (1 + _cvar_precision(delta)) * likely < min(found)[0]:  # by its normal approximation
            found.append((cvar_deviation(n, min(other, ENOUGH_CVAR), delta), CVAR))
    return min(found)


def limit_of_difference(shown: float, rows: np.ndarray, delta: float) -> tuple[float, str]:
    """Return an upper limit of the difference of two chances, whose proportions in the rows differ by `shown`.

    Also return the name of the theorem behind it.

    >>> limit, name = limit_of_difference(0.02, np.array([5421, 10860]), 0.05)
    >>> round(limit - 0.02, 4), name
    (0.0138, 'exact binomial')
    """
    n, other = sorted(rows.tolist())
    exact = DELTAS[0] <= delta <= DELTAS[1] and 0 < n <= other <= MOST_EXACT
    normal = normal_deviation(n, other, delta) if exact else 0.0
    if not exact or berry_esseen_deviation(n, other, delta) <= NEARLY_NORMAL * normal:
        length, name = deviation(rows, delta)
        return shown + length, name
    return _exact_limit(math.ceil(shown / (PRECISION * normal)), n, other, delta), EXACT


@lru_cache(4096)
def berry_esseen_deviation(n: int, other: int, delta: float) -> float:
    """Return the least x that the theorem of Berry and Esseen or Bernstein's inequality proves for all variances."""
    inverse = 1 / np.array([n, other])

    def chance(x: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return a bound of P(S >= x) for variances between low and high, (cells, 2)."""
        least, most = low @ inverse, high @ inverse
        worst = np.clip(2 / 9, low, high)  # v (1 + sqrt(1 - 4 v)) / 2 rises up to v = 2/9 and falls after it
        third = worst * (1 + np.sqrt(1 - 4 * worst)) / 2 @ inverse**2
        with np.errstate(divide="ignore"):
            normal = ndtr(-x / np.sqrt(most)) + SHEVTSOVA * third / least**1.5
        bernstein = np.exp(-(x**2) / (2 * (most + x * inverse.max() / 3)))
        return np.minimum(normal, bernstein) + ROUNDING

    def proved(x: float) -> bool:
        low, high = np.zeros((1, 2)), np.full((1, 2), 0.25)
        for _ in range(24):
            open_ = chance(x, low, high) > delta
            low, high = low[open_], high[open_]
            if not len(low):
                return True
            if len(low) > MOST_CELLS or (chance(x, high, high) > delta).any():
                return False
            low, high = _quarters(low, high)
        return False

    short, long = 0.0, 2 * hoeffding_deviation(1 / inverse, 1.0, delta)
    if not proved(long):
        return math.inf
    while long - short > 1e-4 * long:
        middle = (short + long) / 2
        short, long = (short, middle) if proved(middle) else (middle, long)
    return long


def cvar_deviation(n: int, other: int, delta: float) -> float:
    """Return the largest CVaR at level delta of the shortfall of two binomial proportions, over all their chances.

    The shortfall is the sum of Y/n - r over both groups, Y binomial of chance r (one minus the chance in the group that
    has more). CVaR is at most u + E(shortfall - u)_+ / delta for every u. One point bounds a whole cell: from the
    centre, the mean excess rises by at most `_steepness` for each unit of r. Where that costs more, because r is near 0
    or 1 or delta is small, the upper end does: its shortfall plus the width of the cell is larger than any in the cell.
    """
    z, precision = -float(ndtri(delta)), _cvar_precision(delta)
    low = np.stack(np.meshgrid(*[np.arange(16) / 16] * 2), -1).reshape(-1, 2)
    high, proved, reached, seen = low + 1 / 16, 0.0, 0.0, 0
    while len(low):
        possible = low.sum(1) < 1  # the group with more has the larger chance
        low, high = low[possible], high[possible]
        steep = np.stack([_steepness(m, low[:, i], high[:, i]) for i, m in enumerate((n, other))], 1) / delta
        at = np.where(steep > 2, high, (low + high) / 2)
        rise = ((high - low) * np.minimum(steep / 2, 1)).sum(1)
        sd = np.sqrt(at * (1 - at) @ [1 / n, 1 / other])
        excess = _by_parts(lambda r, u: _mean_excess(n, r[:, 0], other, r[:, 1], u), at, z * sd)
        values = z * sd + (excess + ROUNDING) / delta
        bounds, seen = values + rise, seen + len(low)
        reached = max(reached, float(values.max()))
        open_ = bounds > (1 + precision) * reached
        proved = max(proved, float(bounds[~open_].max(initial=0)))
        if seen > MOST_CELLS:
            return max(proved, float(bounds.max()))
        low, high = _quarters(low[open_], high[open_])
    return proved


def _cvar_precision(delta: float) -> float:
    """Return how far above the largest CVaR a bound may be; a smaller one takes longer where delta is small."""
    return 0.05 * max(1.0, math.sqrt(0.05 / delta))


def _steepness(n: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a bound of |d/dr E f(Y/n - r)| for f convex with slopes in [0, 1] and r between low and high."""
    spread = np.minimum(low * (1 - low), high * (1 - high)) * (n - 1)
    with np.errstate(divide="ignore"):
        largest = 1 / np.sqrt(2 * math.e * spread)  # of all probabilities (Herzog 1947)
    return np.maximum(high, 1 - low) * np.minimum(largest, 1)


def _mean_excess(n: int, r: np.ndarray, other: int, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return E(Y/n - r + Z/other - q - u)_+ for Y, Z binomial with chances r, q (cells,)."""
    _, k, weights = _binomials(n, r)
    start, j, pmf = _binomials(other, q)
    above = np.cumsum(np.stack([pmf, pmf * j / other])[..., ::-1], -1)[..., ::-1]  # chance and mean of the rest
    level = q[:, None] + u[:, None] - k / n + r[:, None]
    place = np.floor(other * level).astype(np.int64) + 1 - start[:, None]
    inside = np.clip(place, 0, pmf.shape[1] - 1)
    chance, mean = (np.take_along_axis(part, inside, 1) for part in above)
    return (weights * np.where(place >= pmf.shape[1], 0, mean - level * chance)).sum(1)


@lru_cache(65_536)
def _exact_limit(steps: int, n: int, other: int, delta: float) -> float:
    """Return the limit of a difference of at most `steps` steps: all larger truths would rarely show so little."""
    slack = normal_deviation(n, other, delta)
    shown, length = steps * PRECISION * slack, slack
    for _ in range(4):  # the largest standard deviation at the limit itself
        p = np.linspace(min(shown + length, 1), 1, 65)
        variance = p * (1 - p) / n + (p - p[0]) * (1 - p + p[0]) / other
        length = max(-float(ndtri(delta)) * math.sqrt(variance.max()), slack / 4)
    while shown + length < 1:
        length += PRECISION * slack
        if rarely_shown(shown, shown + length, n, other, shown + length, 1.0, delta):
            return shown + length
    return 1.0


def rarely_shown(shown: float, truth: float, n: int, other: int, least: float, most: float, delta: float) -> bool:
    """Prove P(X/n - Y/other <= shown) <= delta for chances p of X from least to most, p - truth of Y; False if not.

    The probability falls in the chance of X and rises in that of Y: for p between a and b it is at most that at (a,
    b - truth). `least` is at least `truth`.
    """
    if least > most:
        return True
    z, room, edges = -float(ndtri(delta)), truth - shown, [least]
    while len(edges) == 1 or edges[-1] < most:  # as wide as the normal approximation allows
        p, q = edges[-1], max(edges[-1] - truth, 0.0)
        width = room - z * math.sqrt(p * (1 - p) / n + q * (1 - q) / other)
        edges.append(min(most, p + max(0.8 * width, room * PRECISION / 2)))
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    while len(low):
        open_ = _by_parts(lambda a, b: chance_at_most(shown, n, a, other, b - truth), low, high) > delta
        low, high = low[open_], high[open_]
        middle = (low + high) / 2
        some = middle[:: max(1, len(middle) // 16)]
        narrow = (high - low).min(initial=1) < room * PRECISION / 4
        if narrow or (len(some) and (chance_at_most(shown, n, some, other, some - truth) > delta).any()):
            return False
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return True


def chance_at_most(shown: float, n: int, p: np.ndarray, other: int, q: np.ndarray) -> np.ndarray:
    """Return an upper bound of P(X/n - Y/other <= shown) for X, Y binomial with chances p, q (cells,)."""
    start, _, pmf = _binomials(n, p)
    below = np.cumsum(pmf, 1)
    below[:, -1] = 1.0
    _, k, weights = _binomials(other, q)
    place = np.floor(n * (shown + k / other) + 1e-9).astype(np.int64) - start[:, None]
    chance = np.take_along_axis(below, np.clip(place, 0, below.shape[1] - 1), 1)
    return (weights * np.where(place < 0, 0, chance)).sum(1) + ROUNDING


def _binomials(n: int, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where windows that hold all but TAIL of binomial laws begin, their values and probabilities (cells, k)."""
    radius = math.ceil(math.sqrt(n * math.log(2 / TAIL) / 2))  # Hoeffding
    width = min(n, 2 * radius + 1)
    start = np.clip(np.floor(n * p).astype(np.int64) - radius, 0, n - width)
    k = start[:, None] + np.arange(width + 1)
    p = np.clip(p, 1e-300, 1 - 1e-16)[:, None]
    return start, k, np.exp(_log_choose(n)[k] + n * np.log1p(-p) + k * (np.log(p) - np.log1p(-p)))


@lru_cache(64)
def _log_choose(n: int) -> np.ndarray:
    k = np.arange(n + 1.0)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _by_parts(function: Callable[..., np.ndarray], *cells: np.ndarray) -> np.ndarray:
    """Apply a function to 64 cells at a time, which bounds its memory."""
    pieces = [np.array_split(part, len(part) // 64 + 1) for part in cells]
    return np.concatenate([function(*part) for part in zip(*pieces, strict=True)])


def _quarters(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut every cell (cells, 2) in four."""
    middle = (low + high) / 2
    ends = ((low, middle), (middle, high))
    pairs = [(ends[i], ends[j]) for i in (0, 1) for j in (0, 1)]
    lows, highs = (np.concatenate([np.stack([a[end][:, 0], b[end][:, 1]], 1) for a, b in pairs]) for end in (0, 1))
    return lows, highs
