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
from fairbits.encoding import GroupEncoder

FOLDER = RESULTS / "coverage"
DRAWS = 10_000
ABOUT = f"""\
# How often a certificate is wrong

`python -m benchmarks.coverage`. {DRAWS:,} samples of each population, certified at 95 % through `fairbits.certify`; the
true disparity is known. A certificate is wrong if its bound is below the truth; in the fixed sequence, if the model
that is kept exceeds the limit. In brackets an exact 95 % interval. At most 5 % is promised. The first case is the worst
there is for a hard code, a bit near a fair coin; in others the plug-in total variation errs upwards as well."""


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


def jobs(names: list[str]) -> list[Job]:
    """List the cases."""
    return [Job(case=case, draws=DRAWS) for case in CASES if not names or case in names]


def work(job: Job) -> dict[str, Any]:
    """Count the wrong certificates of a case."""
    rng = np.random.default_rng(0)
    return {"wrong": int(sum(CASES[job.case](rng) for _ in range(job.draws)))}


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    lines = [*ABOUT.splitlines(), "", "| case | wrong |", "|---|---|"]
    for record in sorted(records, key=lambda r: list(CASES).index(r["case"])):
        k, n = record["result"]["wrong"], record["draws"]
        low, high = beta.ppf(0.025, k, n - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, n - k)
        lines.append(f"| {record['case']} | {k / n:.2%} ({low:.2%} to {high:.2%}) |")
    return lines


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, work, FOLDER, tables)
