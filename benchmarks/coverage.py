"""How often a certificate is wrong, on populations with known truth: ``python -m benchmarks.coverage [--workers N]``.

Every case has one line in results/coverage/records.jsonl and is not run again.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits import CertificateState, certify
from fairbits.certificate import group_rates, selection_ratio
from fairbits.certificate.anytime import Watched, anytime_slack, log_evidence
from fairbits.encoding import GroupEncoder
from fairbits.information.array_information import law_distance
from fairbits.workflow.comparisons import USELESS, better_than_constant

FOLDER = RESULTS / "coverage"
DRAWS = 10_000
ABOUT = f"""\
# How often a certificate is wrong

`python -m benchmarks.coverage`. {DRAWS:,} samples of each population, certified at 95 % through `fairbits.certify`; the
true disparity is known. A certificate is wrong if its bound is below the truth; in the fixed sequence, if the model
that is kept exceeds the limit; a bound on a ratio of rates (`selection_ratio`), if it is above the truth. In brackets
an exact 95 % interval. At most 5 % may be. The first case is the worst there is for a hard code, a bit near a fair
coin; in others the plug-in total variation errs upwards as well."""
RATES = """
## Rates by group

Intervals of `fairbits.certificate.group_rates` at 95 %, of a group of 60 rows beside one of 150: how often the truth is
outside.

| rate | wrong |
|---|---|"""
STREAMS = """
## Bounds at all times

{draws:,} streams of {batches} batches, each of {size} rows in each of two groups, looked at after every batch, with a
limit of 0.1 at 95 %, by the bounds of `CertificateMonitor`. A stream is wrong if the upper bound is below the truth, or
the lower bound above it, at any look: no rule of when to stop does worse.

| stream | upper bound wrong | lower bound wrong |
|---|---|---|"""
DELAYS = """
## How soon a shift is noticed

In {draws:,} streams the disparity changes after {before} such batches: how many batches later half, and 90 %, of the
streams without an earlier alarm are contradicted.

| disparity | earlier alarms | half | 90 % |
|---|---|---|---|"""
BATCHES, BEFORE, AFTER, SIZE = 40, 20, 100, 100  # of a stream; before and after a shift; rows of a group in a batch
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
    return float(law_distance(law[0], law[1]))


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

    def wrong(rng: np.random.Generator) -> bool:
        decision, whole = bits(rng, s, (0.55, 0.45)), CertificateState([0, 1], groups=encoder)
        for k in range(5):
            part = CertificateState([0, 1], groups=encoder)
            whole.merge(part.add(decision[place == k], sensitive_features=s[place == k]))
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
    truth = float(law_distance(shares[0], shares[1]))
    return certify(scores, sensitive_features=s, levels=cuts).total_variation < truth


def ratio(*rates: float) -> Callable:
    """Return the case of a bound on the smallest ratio of selection rates."""
    s, truth = groups(*[200] * len(rates)), min(rates) / max(rates)
    return lambda rng: selection_ratio(bits(rng, s, rates), sensitive_features=s)[1] > truth


def useful_by_chance(rng: np.random.Generator) -> bool:
    """Test whether a model is useful that is right as often as the constant class, and differs from it in 20 %."""
    y, differs = (rng.random(400) < 0.5).astype(int), rng.random(400) < 0.2
    return better_than_constant(y, differs.astype(int), 0) <= USELESS


def rates_by_group(rng: np.random.Generator, draws: int) -> dict[str, Any]:
    """Count the intervals of `group_rates` that miss the truth, of the second of two groups."""
    s, base = groups(150, 60), np.array([0.5, 0.3])
    chances = np.array([[0.1, 0.7], [0.2, 0.6]])  # of the decision, by group and label
    selected = (1 - base) * chances[:, 0] + base * chances[:, 1]
    truth = {
        "selected": selected[1],
        "base": base[1],
        "true_positive": chances[1, 1],
        "false_positive": chances[1, 0],
        "accuracy": base[1] * chances[1, 1] + (1 - base[1]) * (1 - chances[1, 0]),
        "ratio": selected[1] / selected[0],
    }
    wrong = dict.fromkeys(truth, 0)
    for _ in range(draws):
        y = bits(rng, s, base)
        decision = (rng.random(len(s)) < chances[s, y]).astype(int)
        found = group_rates(decision, sensitive_features=s, y=y).iloc[1]
        for name, value in truth.items():
            wrong[name] += not found[f"{name}_low"] <= value <= found[f"{name}_high"]
    return {"wrong": wrong}


def streams(rng: np.random.Generator, laws: list[np.ndarray], draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw streams of hard words, one law (2, words) for each batch, and add them up as `TwoGroups` does, all at once.

    Returns what they show up to every batch (draws, batches), their gains on sets that were chosen before, and the
    sums of the weights.
    """
    weight, found = SIZE / 2, []
    table = recent = np.zeros((draws, laws[0].shape[1]))
    for law in laws:
        counts = rng.multinomial(SIZE, law, (draws, 2))
        step = weight * (counts[:, 0] - counts[:, 1]) / SIZE
        gain = (step * (recent > 0)).sum(1)
        recent = step + recent * (WATCHED.planned / (WATCHED.planned + weight))
        table = table + step
        found.append((np.abs(table).sum(1) / 2, gain))
    weights = weight * np.arange(1, len(laws) + 1)
    shown, gains = np.stack(found, -1)
    return shown / weights, np.cumsum(gains[:, 1:], 1), weights


def alarms(gains: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Return the number of gains up to which a level is first contradicted, 0 if it never is.  (draws,)"""
    enough = math.log(1 / WATCHED.delta)
    found = [log_evidence(gains[:, :t], weights[:t], level, WATCHED.limit) > enough for t in range(1, len(gains.T) + 1)]
    return np.where(np.any(found, 0), np.argmax(found, 0) + 1, 0)


def one_stream(*rates: tuple[float, ...]) -> Callable:
    """Return the case of streams of hard words: how many have a wrong upper, and a wrong lower bound, at some look."""
    law = np.array(rates)
    truth = float(law_distance(law[0], law[1]))

    def wrong(rng: np.random.Generator, draws: int) -> dict[str, Any]:
        shown, gains, weights = streams(rng, [law] * BATCHES, draws)
        slack = np.array([anytime_slack(weight, WATCHED.limit, WATCHED.delta) for weight in weights])
        below = (shown + slack < truth).any(1)
        return {"wrong": [int(below.sum()), int((alarms(gains, weights, truth) > 0).sum())]}

    return wrong


def delay(before: float, after: float) -> Callable:
    """Return the case of a hard bit whose rates in two groups change: how many batches later that is noticed."""
    laws = [np.array([[0.5 - d / 2, 0.5 + d / 2], [0.5 + d / 2, 0.5 - d / 2]]) for d in (before, after)]

    def noticed(rng: np.random.Generator, draws: int) -> dict[str, Any]:
        _, gains, weights = streams(rng, [laws[0]] * BEFORE + [laws[1]] * AFTER, draws)
        found = alarms(gains, weights, WATCHED.limit) + 1 - BEFORE  # the first batch has no gain
        early = (found <= 0) & (found > 1 - BEFORE)
        late = np.where(found > 0, found, np.inf)[~early]
        return {"early": int(early.sum()), "batches": np.quantile(late, [0.5, 0.9], method="higher").tolist()}

    return noticed


CASES: dict[str, Callable] = {
    "hard bit near a fair coin, 300 and 300": one_bit(300, 300, rates=(0.55, 0.45)),
    "hard bit, 100 and 900": one_bit(100, 900, rates=(0.55, 0.45)),
    "rare hard bit, 5 % and 2 %, 500 and 500": one_bit(500, 500, rates=(0.05, 0.02)),
    "nearly constant decision, 4.5 % and 0 %, 73 and 498": one_bit(73, 498, rates=(0.045, 0.0)),
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
    "ratio of selection rates, two groups": ratio(0.5, 0.2),
    "ratio of selection rates, three groups": ratio(0.5, 0.35, 0.2),
    'a model as good as the constant class is called "useful"': useful_by_chance,
}
RATE_CASE = "rates by group"
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
    found = [*CASES, RATE_CASE, *STREAM_CASES, *DELAY_CASES]
    return [Job(case=case, draws=DRAWS) for case in found if not names or case in names]


def work(job: Job) -> dict[str, Any]:
    """Count the wrong certificates of a case, or the batches until a shift is noticed."""
    rng = np.random.default_rng(0)
    if job.case in CASES:
        return {"wrong": int(sum(CASES[job.case](rng) for _ in range(job.draws)))}
    return (STREAM_CASES | DELAY_CASES | {RATE_CASE: rates_by_group})[job.case](rng, job.draws)


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    found = {record["case"]: record["result"] for record in records}
    lines = [*ABOUT.splitlines(), "", "| case | wrong |", "|---|---|"]
    lines += [f"| {case} | {share(found[case]['wrong'])} |" for case in CASES if case in found]
    if RATE_CASE in found:
        missed = found[RATE_CASE]["wrong"]
        lines += [*RATES.splitlines(), *(f"| {name.replace('_', ' ')} | {share(k)} |" for name, k in missed.items())]
    lines += STREAMS.format(draws=DRAWS, batches=BATCHES, size=SIZE).splitlines()
    for case in [case for case in STREAM_CASES if case in found]:
        lines.append(f"| {case} | {' | '.join(map(share, found[case]['wrong']))} |")
    lines += DELAYS.format(draws=DRAWS, before=BEFORE).splitlines()
    for case in [case for case in DELAY_CASES if case in found]:
        early, after = found[case]["early"], [f"{n:g} ({n * 2 * SIZE:,.0f} rows)" for n in found[case]["batches"]]
        lines.append(f"| {case} | {share(early)} | {' | '.join(after)} |")
    return lines


def share(k: int, n: int = DRAWS) -> str:
    """Return a share of the samples, with its exact interval."""
    low, high = beta.ppf(0.025, k, n - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, n - k)
    return f"{k / n:.2%} ({low:.2%} to {high:.2%})"


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, work, FOLDER, tables)
