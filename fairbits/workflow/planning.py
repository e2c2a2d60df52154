"""Which limits the calibration rows can prove, from the sizes of their groups alone; needs no torch and no training."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.certificate.confidence_bounds import information_bound
from fairbits.certificate.decision_rates import equal_limit, smallest_limit
from fairbits.certificate.deviations import normal_deviation
from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import one_row_each
from fairbits.errors import InputError
from fairbits.tables.task import Task
from fairbits.workflow.option_words import WORDS

LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SELECTED = (0.05, 0.2, 0.5)  # shares of the people whom a decision selects
usual_limit = partial(equal_limit, rate=0.2)  # that share by which decisions are judged
LARGER = 0.4  # share of the rows that certify, to advise
WORTHWHILE = 0.9  # advise what brings the slack below this share of it


class Groups(NamedTuple):
    """The groups of a sensitive column, or of several crossed, with their people among the calibration rows."""

    column: str
    label: Any  # of these people; None: all
    people: dict[str, int]

    @property
    def rows(self) -> np.ndarray:
        """The people of every group."""
        return np.array(list(self.people.values()))

    @property
    def slack(self) -> float:
        """How much the two smallest groups cost, up to a factor."""
        return math.inf if not self.rows.min() else math.sqrt(float((1 / np.sort(self.rows)[:2]).sum()))

    @property
    def smallest(self) -> str:
        """The smallest group."""
        return min(self.people, key=lambda name: self.people[name])


def groups_of(task: Task, rows: np.ndarray, labels: Sequence[Any] = (None,)) -> list[Groups]:
    """Return the groups of every column, or of the crossing, among some rows; also within labels."""
    encoder, found = GroupEncoder(groups=task.groups, min_group_size=1).fit(task.s), []
    for label in labels:
        own = rows if label is None else rows[task.y[rows] == label]
        own = own[one_row_each(task.people(own), len(own))]
        numbers = encoder.transform(task.s.iloc[own]) if len(own) else np.zeros((0, len(encoder.titles_)), dtype=int)
        for title, names, column in zip(encoder.titles_, encoder.names_, numbers.T, strict=True):
            counts = np.bincount(column, minlength=len(names)).tolist()
            found.append(Groups(title, label, dict(zip(names, counts, strict=True))))
    return found


def release_kind(task: Task, of: str, code_size: int | None = None) -> str:
    """Return which bounds a certificate of codes or of the class takes, as `smallest_limit` names them."""
    two = len(np.unique(task.y)) == 2 if of == "class" else code_size == 1
    return "any values" if task.person is not None else "binary" if two else "hard"


def check_limits(task: Task, options: Any) -> None:
    """Raise InputError if no model can be certified to the limits, whatever these calibration rows show of it."""
    for name in ("max_disparity", "max_odds_disparity", "max_information"):
        limit, most = getattr(options, name), math.inf if name == "max_information" else 1
        if limit is None or 0 < limit < most:
            continue
        problem = f"must be above 0{' and below 1: it is a difference of rates' * (most == 1)}."
        remedy = "No table proves that nothing differs: `fairbits plan` shows the limits that yours can prove."
        if limit > 0:
            remedy = f"For {limit:g} percentage points, pass {limit / 100:g}."
        raise InputError(problem, argument=name, value=limit, remedy=remedy)
    labels = {str(label): label for label in np.unique(task.y).tolist()}
    within = [labels[name] for name in labels if options.odds_label in (None, name)]
    kind, delta = release_kind(task, options.promise, options.code_size), 1 - options.confidence
    for name in ("max_disparity", "max_odds_disparity", "max_information"):
        limit = getattr(options, name)
        if limit is None or not (found := groups_of(task, task.parts[1], within if "odds" in name else (None,))):
            continue
        worst = max(found, key=lambda groups: groups.slack)
        if name == "max_information":
            least = equal = information_bound(0.0, worst.rows, delta)
        else:
            least, equal = (bound(worst.rows, delta, kind) for bound in (smallest_limit, usual_limit))
        if limit >= least:
            continue
        group, few = worst.smallest, worst.people[worst.smallest]
        among = "" if worst.label is None else f" with label {worst.label}"
        problem = (
            f"cannot be proved: in this split (--seed {task.seed}), group {group!r} of {worst.column} has {few:,} "
            f"calibration rows{among}, too few for a bound below {at_least(least)}, whatever they show."
        )
        rows = rounded_up(len(task.y) * (equal / limit) ** (1 if name == "max_information" else 2))
        ways = [f"use about {rows:,} rows like these" if few else "use more rows of this group"]
        ways += ["pool rare groups with --merge-small"] * (len(worst.people) > 2)
        ways += ["take each column on its own with --each"] * _crossed(task)
        remedy = f"Raise the limit or --calibration-share, {', '.join([*ways[:-1], 'or ' + ways[-1]])}."
        raise InputError(problem, argument=name, value=limit, remedy=remedy)


def _crossed(task: Task) -> bool:
    return task.groups == "intersection" and task.s.shape[1] > 1


def plan(task: Task, confidence: float = 0.95) -> dict[str, Any]:
    """Return what the calibration rows of a task can prove about codes and decisions, ready for JSON.

    That is about this split; a limit is impossible only if it is in the most favourable split, too.
    """
    train, held, test = task.parts
    found, delta, n = groups_of(task, held), 1 - confidence, len(task.y)
    worst, most = max(found, key=lambda groups: groups.slack), max(int(groups.rows.max()) for groups in found)
    kinds = {"codes": release_kind(task, "code"), "decisions": release_kind(task, "class")}
    least = {of: smallest_limit(worst.rows, delta, kind) for of, kind in kinds.items()}
    any_split = {
        of: min(least[of], max((smallest_limit(rows, delta, kind) for rows in task.favourable), default=0.0))
        for of, kind in kinds.items()
    }
    equal = {of: usual_limit(worst.rows, delta, kind) for of, kind in kinds.items()}
    rates = {f"{rate:.0%}": equal_limit(worst.rows, delta, kinds["decisions"], rate) for rate in (0.0, *SELECTED)}
    trained = {(groups.column, name): size for groups in groups_of(task, train) for name, size in groups.people.items()}
    listed = [
        {"column": groups.column, "group": name, "training": trained[groups.column, name], "calibration": size}
        | {"slack": normal_deviation(size, most, delta) if size else 1.0}
        for groups in found
        for name, size in groups.people.items()
    ]
    limits = [
        {"limit": limit}
        | {of: _verdict(limit, any_split[of], least[of], equal[of]) for of in kinds}
        | {f"{of}_rows": rounded_up(n * (2 * equal[of] / limit) ** 2) for of in kinds}
        for limit in LIMITS
    ]
    return {
        "rows": {"train": len(train), "calibration": len(held), "test": len(test)},
        "confidence": confidence,
        "smallest_group": {"column": worst.column, "group": worst.smallest, "calibration": int(worst.rows.min())},
        "groups": listed,
        "seed": task.seed,
        "codes": {"smallest": least["codes"], "smallest_of_any_split": any_split["codes"], "equal": equal["codes"]},
        "decisions": {"smallest": least["decisions"], "smallest_of_any_split": any_split["decisions"], "equal": rates},
        "limits": limits,
        "advice": _advice(task, worst, trained, equal["codes"]),
        "notes": task.notes,
    }


def _verdict(limit: float, any_split: float, least: float, equal: float) -> str:
    if limit < least:
        return "impossible" if limit < any_split else "not in this split"
    return "borderline" if limit < 2 * equal else "fine"


def _advice(task: Task, worst: Groups, trained: dict[tuple[str, str], int], codes: float) -> list[str]:
    """Return what would bring the bound of codes down most, by the slack of the groups' sizes."""
    ways = {}
    if len(worst.people) > 2:
        (one, a), (two, b), *rest = sorted(worst.people.items(), key=lambda pair: pair[1])
        pooled = Groups("", None, {"": a + b} | dict(rest))
        n = max(trained[worst.column, one], trained[worst.column, two]) + 1
        ways[f"pool {one!r} and {two!r} (--merge-small {n})"] = pooled.slack
    if _crossed(task):
        alone = [task.s[name].iloc[task.parts[1]].astype(str).value_counts().to_dict() for name in task.s]
        ways["take each column on its own (--each)"] = max(Groups("", None, own).slack for own in alone)
    share = len(task.parts[1]) / len(task.y)
    ways[f"pass --calibration-share {LARGER:g}, which leaves fewer rows to train"] = worst.slack * math.sqrt(
        share / LARGER
    )
    return [
        f"The bound of a code that shows no disparity falls from {at_most(codes)} to about "
        f"{codes * slack / worst.slack:.3f} if you {way}."
        for way, slack in ways.items()
        if worst.slack < math.inf and slack < WORTHWHILE * worst.slack
    ]


def rounded_up(rows: float) -> int:
    """Return a number of rows, rounded up to two digits.

    >>> rounded_up(1234.5), rounded_up(73)
    (1300, 73)
    """
    digits = 10 ** max(len(str(math.ceil(rows))) - 2, 0)
    return math.ceil(rows / digits) * digits


def plan_words(found: dict[str, Any]) -> str:
    """Return a plan as text."""
    small, codes, decisions = found["smallest_group"], found["codes"], found["decisions"]
    groups = pd.DataFrame(found["groups"]).assign(slack=[at_most(min(group["slack"], 1)) for group in found["groups"]])
    groups.columns = ["column", "group", "training rows", "calibration rows", "slack of codes, about"]
    limits = [
        {"limit": f"{one['limit']:g}"}
        | {of: one[of] + f" ({one[f'{of}_rows']:,})" * (one[of] != "fine") for of in ("codes", "decisions")}
        for one in found["limits"]
    ]
    selected = ", ".join(f"{at_most(bound)} ({rate} selected)" for rate, bound in decisions["equal"].items())
    return WORDS["plan"]["whole"].format(
        **found["rows"],
        confidence=percent(found["confidence"]),
        groups=groups.to_string(index=False),
        small=small,
        seed=found["seed"],
        codes=[at_most(codes["equal"]), at_least(codes["smallest"]), at_least(codes["smallest_of_any_split"])],
        decisions=[selected, *(at_least(decisions[name], 4) for name in ("smallest", "smallest_of_any_split"))],
        limits=pd.DataFrame(limits).to_string(index=False),
        more="\n".join(f"- {line}" for line in [*found["advice"], *found["notes"]]),
    )
