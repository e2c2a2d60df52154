"""How often a certificate is wrong, on populations with known truth: ``python -m benchmarks.coverage [--workers N]``.

Every case has one line in results/coverage/records.jsonl and is not run again.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits import CertificateState, certify
from fairbits.certificate.anytime import TwoGroups, Watched
from fairbits.certificate.group_sums import GroupSums
from fairbits.encoding import GroupEncoder

FOLDER = RESULTS / "coverage"
DRAWS = 10_000
ABOUT = f"""\
# How often a certificate is wrong

`python -m benchmarks.coverage`. {DRAWS:,} samples of each population, certified at 95 % through `fairbits.certify`; the
true disparity is known. A certificate is wrong if its bound is below the truth; in the fixed sequence, if the model
that is kept exceeds the limit. In brackets an exact 95 % interval. At most 5 % is promised. The first case is the worst
there is for a hard code, a bit near a fair coin; in others the plug-in total variation errs upwards as well."""
STREAMS = """
## Bounds at all times

{draws:,} streams of {batches} batches, looked at after every batch with a limit of 0.1, by the core of
`CertificateMonitor`. A stream is wrong if the upper bound is below the truth, or the lower bound above it, at any look:
no rule of when to stop does worse.

| stream | upper bound wrong | lower bound wrong |
|---|---|---|"""
DELAYS = """
## How soon a shift is noticed

The disparity changes after {before} batches, each of {size} rows in each of two groups; how many batches later the
verdict is "contradicted".

| disparity | streams | alarm before the shift | median | 90 % of streams |
|---|---|---|---|---|"""
BATCHES, BEFORE, SIZE = 40, 20, 100  # of a stream; before a shift; rows of a group in a batch
WATCHED = Watched(0.1, 0.05)


def bits(rng: np.random.Generator, s: np.ndarray, rates: Any) -> np.ndarray:
    """Draw a bit for every row, with the rate of its group."""
    return (rng.random(len(s)) < np.asarray(rates)[s]).astype(np.int64)


def groups(*sizes: int) -> np.ndarray:
    """Return groups of these sizes."""
    return np.repeat(np.arange(len(sizes)), sizes)


def one_bit(*sizes: int, rates: tuple[float, ...]) -> Callable:
    """Return the case of a hard bit."""
    s = groups(*sizes)
    truth = max(rates) - min(rates)
    return lambda rng: certify(bits(rng, s, rates), sensitive_features=s).total_variation < truth


def fractional(spread: float) -> Callable:
    """Return the case of a random bit whose chances are beta variables."""
    s, means = groups(300, 500), np.array([0.6, 0.4])

    def wrong(rng: np.random.Generator) -> bool:
        theta = rng.beta(means[s] * spread, (1 - means[s]) * spread)
        return certify(theta[:, None], sensitive_features=s).total_variation < 0.2

    return wrong


def within_labels(rng: np.random.Generator) -> bool:
    """Certify a decision whose rates differ only among people with label 1."""
    s, y = groups(600, 600), np.tile([0, 1], 600)
    decision = (rng.random(1200) < np.where(y == 1, np.array([0.6, 0.4])[s], 0.5)).astype(int)
    found = certify(decision, sensitive_features=s, y=y)
    return next(bound.total_variation for bound in found.bounds if bound.label == 1) < 0.2


def people() -> Callable:
    """Return the case of people with 1 to 40 rows that are alike: a decision is drawn once for all rows."""
    s = groups(75, 75)
    rows = np.random.default_rng(0).integers(1, 41, 150)
    person = np.repeat(np.arange(150), rows)

    def wrong(rng: np.random.Generator) -> bool:
        decision = bits(rng, s, (0.6, 0.4))
        return certify(decision[person], sensitive_features=s[person], person=person).total_variation < 0.2

    return wrong


def drawn_words(rng: np.random.Generator) -> bool:
    """Certify three drawn bits, independent given the group."""
    s, rates = groups(400, 400), np.array([[0.6, 0.5, 0.55], [0.4, 0.5, 0.45]])
    words = (rng.random((800, 3)) < rates[s]).astype(int)
    return certify(words, sensitive_features=s).total_variation < word_variation(rates)


def word_variation(rates: np.ndarray) -> float:
    """Return the total variation of independent bits with these rates in two groups."""
    law = np.ones((2, 1))
    for bit in rates.T:
        law = np.concatenate([law * (1 - bit[:, None]), law * bit[:, None]], 1)
    return float(np.abs(law[0] - law[1]).sum() / 2)


def two_models(rng: np.random.Generator) -> bool:
    """Certify two random codes of one bit each, received together."""
    s, rates = groups(300, 300), np.array([[0.6, 0.55], [0.4, 0.45]])
    theta = rates[s] + rng.uniform(-0.3, 0.3, (600, 2))
    found = certify(theta[:, :1], sensitive_features=s, beside=[theta[:, 1:]])
    return found.total_variation < word_variation(rates)


def merged() -> Callable:
    """Return the case of a hard bit whose rows are at five places."""
    s = groups(300, 300)
    place = np.arange(600) % 5
    encoder = GroupEncoder(min_group_size=1).fit(s)
    known = {"group_encoder_": encoder, "code_size": 1, "is_hard": True, "random_state": None, "predict": None}
    model = SimpleNamespace(**known, code_probabilities=lambda X: X.astype(float))

    def wrong(rng: np.random.Generator) -> bool:
        X, whole = bits(rng, s, (0.55, 0.45))[:, None], CertificateState(model)
        for k in range(5):
            part = CertificateState(model).add(X[place == k], sensitive_features=s[place == k])
            whole.merge(part)
        return whole.finish().total_variation < 0.1

    return wrong


def fixed_sequence(rng: np.random.Generator) -> bool:
    """Choose in a fixed order among one model within the limit and four just above it."""
    s, limit = groups(500, 500), 0.2
    kept, best = 0.0, -1.0
    for truth in (0.1, 0.201, 0.21, 0.205, 0.22):
        decision = bits(rng, s, (0.5 + truth / 2, 0.5 - truth / 2))
        if certify(decision, sensitive_features=s).total_variation > limit:
            break
        score = rng.random()  # of any kind, on any rows
        kept, best = (truth, score) if score > best else (kept, best)
    return kept > limit


def score_levels(rng: np.random.Generator) -> bool:
    """Certify scores with beta laws, released in four levels."""
    s, cuts = groups(500, 700), np.array([0.25, 0.5, 0.75])
    laws = [beta(3, 2), beta(2, 3)]
    scores = rng.beta(np.array([3, 2])[s], np.array([2, 3])[s])
    shares = [np.diff(np.concatenate([[0], law.cdf(cuts), [1]])) for law in laws]
    truth = float(np.abs(shares[0] - shares[1]).sum() / 2)
    return certify(scores, sensitive_features=s, levels=cuts).total_variation < truth


def batch(rng: np.random.Generator, rates: np.ndarray) -> GroupSums:
    """Draw words, or the bit 1, with the rates (2, words) of two groups; return their sums."""
    return GroupSums(rng.multinomial(SIZE, rates).astype(np.float64), np.array([SIZE, SIZE]))


def one_stream(*rates: tuple[float, ...]) -> Callable:
    """Return the case of a stream of hard words: whether a look has a wrong upper, or a wrong lower bound."""
    law = np.array(rates)
    truth = float(np.abs(law[0] - law[1]).sum() / 2)

    def wrong(rng: np.random.Generator) -> np.ndarray:
        pair = TwoGroups.empty(law.shape[1])
        for _ in range(BATCHES):
            pair.add(batch(rng, law), WATCHED)
        return np.array([pair.at_most < truth - 1e-12, pair.at_least > truth + 1e-12])

    return wrong


def delay(before: float, after: float) -> Callable:
    """Return the case of a hard bit whose rates in two groups change: how many batches later that is noticed."""
    laws = [np.array([[0.5 - d / 2, 0.5 + d / 2], [0.5 + d / 2, 0.5 - d / 2]]) for d in (before, after)]

    def noticed(rng: np.random.Generator) -> int:
        pair, n = TwoGroups.empty(2), 0
        while pair.at_least <= WATCHED.limit:
            pair.add(batch(rng, laws[n >= BEFORE]), WATCHED)
            n += 1
        return n - BEFORE

    return noticed


CASES: dict[str, Callable] = {
    "hard bit near a fair coin, 300 and 300": one_bit(300, 300, rates=(0.55, 0.45)),
    "hard bit, 100 and 900": one_bit(100, 900, rates=(0.55, 0.45)),
    "rare hard bit, 5 % and 2 %, 500 and 500": one_bit(500, 500, rates=(0.05, 0.02)),
    "five groups, two of them tiny": one_bit(500, 400, 300, 20, 10, rates=(0.5, 0.45, 0.5, 0.4, 0.65)),
    "chances of a random bit, nearly hard": fractional(0.1),
    "chances of a random bit, spread out": fractional(1.0),
    "within labels": within_labels,
    "people with 1 to 40 rows": people(),
    "drawn words of three bits": drawn_words,
    "two models together": two_models,
    "merged from five places": merged(),
    "scores in four levels": score_levels,
    "fixed sequence, best of the passed kept": fixed_sequence,
}
STREAM_CASES: dict[str, Callable] = {
    "hard bit near a fair coin, disparity at the limit": one_stream((0.45, 0.55), (0.55, 0.45)),
    "hard bit, fair": one_stream((0.5, 0.5), (0.5, 0.5)),
    "eight words, disparity at the limit": one_stream((0.15,) * 4 + (0.1,) * 4, (0.125,) * 8),
}
DELAY_CASES: dict[str, Callable] = {
    "0.1 to 0.2": delay(0.1, 0.2),
    "0.05 to 0.15": delay(0.05, 0.15),
    "0.1 to 0.2 in favour of the other group": delay(-0.1, 0.2),
}


def jobs(names: list[str]) -> list[Job]:
    """List the cases."""
    found = {case: DRAWS for case in (*CASES, *STREAM_CASES)} | dict.fromkeys(DELAY_CASES, DRAWS // 10)
    return [Job(case=case, draws=draws) for case, draws in found.items() if not names or case in names]


def work(job: Job) -> dict[str, Any]:
    """Count the wrong certificates of a case, or the batches until a shift is noticed."""
    rng = np.random.default_rng(0)
    if job.case in DELAY_CASES:
        found = np.array([DELAY_CASES[job.case](rng) for _ in range(job.draws)])
        late = found[found > 0]
        return {"early": int((found <= 0).sum()), "batches": np.quantile(late, [0.5, 0.9]).tolist()}
    run = (CASES | STREAM_CASES)[job.case]
    return {"wrong": np.sum([run(rng) for _ in range(job.draws)], axis=0).tolist()}


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    found = {record["case"]: record["result"] for record in records}
    lines = [*ABOUT.splitlines(), "", "| case | wrong |", "|---|---|"]
    lines += [f"| {case} | {share(found[case]['wrong'])} |" for case in CASES if case in found]
    lines += STREAMS.format(draws=DRAWS, batches=BATCHES).splitlines()
    for case in [case for case in STREAM_CASES if case in found]:
        lines.append(f"| {case} | {' | '.join(map(share, found[case]['wrong']))} |")
    lines += DELAYS.format(before=BEFORE, size=SIZE).splitlines()
    for case in [case for case in DELAY_CASES if case in found]:
        early, after = found[case]["early"], [f"{n:g} ({n * 2 * SIZE:,.0f} rows)" for n in found[case]["batches"]]
        lines.append(f"| {case} | {DRAWS // 10:,} | {early} | {' | '.join(after)} |")
    return lines


def share(k: int, n: int = DRAWS) -> str:
    """Return a share of the samples, with its exact interval."""
    low, high = beta.ppf(0.025, k, n - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, n - k)
    return f"{k / n:.2%} ({low:.2%} to {high:.2%})"


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, work, FOLDER, tables)
