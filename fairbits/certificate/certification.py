"""From held-out rows to a certificate: numbers, what they cover, and what they do not."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from fairbits.certificate.confidence_bounds import Estimates
from fairbits.certificate.deviations import HOEFFDING, hoeffding_deviation
from fairbits.certificate.group_sums import group_sums
from fairbits.certificate.released_code import Release, binary_digits, fitted_code
from fairbits.encoding import GroupEncoder, index_hashes, row_hashes
from fairbits.errors import InputError, InputWarning

THEOREMS = ("shortest", HOEFFDING)
LARGE_DEVIATION = 0.25  # a group whose rows alone cost this much is too small to certify
Bound = Annotated[float, Field(ge=0, le=1)]
RANDOM_DOES_NOT_COVER = (
    "more draws of the same person than stated, or the bits' probabilities, logits or earlier layers",
    "anyone who knows the random numbers of the release",
)
HARD_DOES_NOT_COVER = ("the bits' probabilities, logits or earlier layers",)
DECISION_DOES_NOT_COVER = ("the score behind the decision, or anything else that the model computes",)
SEVERAL_ROWS = "several rows of one person, received together"
OTHER_MODELS = "anyone who also receives what another model says about the same people"
DOES_NOT_COVER = (
    "anyone who knows more about the person than what is released",
    "rows from another distribution than the calibration rows, or groups recorded wrongly",
    "single persons, and groups that are not listed here",
    "a model that was chosen by looking at these calibration rows",
)


@dataclass(frozen=True)
class GroupBounds:
    """Upper confidence bounds for one sensitive column, among all rows or those of one label."""

    column: str
    label: bool | int | float | str | None  # None: all rows
    rows: dict[str, Annotated[int, Field(ge=0)]]  # per group
    total_variation: Bound
    balanced_accuracy: Bound
    information: float  # bits
    estimated_total_variation: float  # of the calibration rows themselves; an upper limit where codes were drawn
    estimated_information: float
    theorem: str = HOEFFDING  # behind the bound of the total variation


@dataclass(frozen=True)
class Certificate:
    """What held-out rows prove about everyone who receives the code."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    bounds: tuple[GroupBounds, ...]
    release: dict[str, Any]
    release_words: str
    prior: str  # which group probabilities the information is taken at
    exact: bool  # sums over all words, or Monte-Carlo with its own share of the error
    simultaneous: bool
    seeded: bool  # the model draws with a fixed seed
    promise: str | None = None  # of a model that was chosen by these rows: what is guaranteed in place of the numbers
    asymptotic: bool = False  # version 0.1 could use a normal approximation
    by_person: bool = False  # several rows of a person count once; else each row is taken for another person
    beside: int = 0  # other models whose codes the recipient has as well

    @property
    def total_variation(self) -> float:
        """Bound on the disparity of any decision made from the code: the worst column."""
        return max(b.total_variation for b in self._overall)

    @property
    def balanced_accuracy(self) -> float:
        """Bound on how well anyone can guess the group: the worst column."""
        return max(b.balanced_accuracy for b in self._overall)

    @property
    def information(self) -> float:
        """Bound on I(T;S), in bits: the worst column."""
        return max(b.information for b in self._overall)

    @property
    def within_labels(self) -> float | None:
        """Bound on the disparity of any decision among people with the same label; None without labels."""
        return max((b.total_variation for b in self.bounds if b.label is not None), default=None)

    @property
    def rows(self) -> dict[str, int]:
        """Calibration rows per group, as `column: group`."""
        return {f"{b.column}: {group}": n for b in self._overall for group, n in b.rows.items()}

    @property
    def _overall(self) -> list[GroupBounds]:
        return [b for b in self.bounds if b.label is None]

    @property
    def covers(self) -> str:
        """What is guaranteed, in words."""
        if self.promise is not None:
            return (
                f"Guaranteed with probability {self.confidence:g} over the calibration rows: {self.promise} The "
                "numbers above are estimates for the chosen model, not part of the guarantee."
            )
        each = "All numbers hold together" if self.simultaneous else "Each number holds on its own"
        who = "Rows of the same person count once" if self.by_person else "Each row is taken for another person"
        kind = ", disparity and balanced accuracy by a normal approximation" if self.asymptotic else ""
        return (
            f"With probability {self.confidence:g} over the calibration rows: for anyone who receives "
            f"{self.release_words}, the rates of any decision made from it differ between two groups by at most the "
            "stated disparity (total variation), and nobody can guess the group with a balanced accuracy above the one "
            f"stated. {each}{kind}. {who}. The leakage is at {self.prior}."
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        """What is not guaranteed, in words."""
        first: tuple[str, ...] = HARD_DOES_NOT_COVER if self.release.get("hard") else RANDOM_DOES_NOT_COVER
        first = DECISION_DOES_NOT_COVER if self.release.get("decision") else first
        first += (SEVERAL_ROWS,) * self.by_person + (OTHER_MODELS,) * (not self.beside)
        known = (*first, *(DOES_NOT_COVER if self.promise is None else DOES_NOT_COVER[:-1]))
        return (*known, "anyone who knows the fixed seed that this model draws with") if self.seeded else known

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        derived = ("total_variation", "balanced_accuracy", "information", "within_labels", "covers", "does_not_cover")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}

    def __str__(self) -> str:
        lines = [f"Certificate, confidence {self.confidence:g}"]
        most = "" if self.exact else "at most "
        for b in self.bounds:
            where = b.column if b.label is None else f"{b.column} among label {b.label!r}"
            lines.append(
                f"  {where}: disparity <= {b.total_variation:.4f} (these rows show {most}"
                f"{b.estimated_total_variation:.4f}), balanced accuracy <= {b.balanced_accuracy:.4f}, "
                f"leakage <= {b.information:.4f} bits; "
                "rows: " + ", ".join(f"{group} {n}" for group, n in b.rows.items()) + f"; theorem: {b.theorem}"
            )
        return "\n".join([*lines, f"  {self.covers}", "  Not covered: " + "; ".join(self.does_not_cover) + "."])


class SmallGroupWarning(InputWarning):
    """A group has so few calibration rows that its bounds say little."""


class TrainingRowsWarning(InputWarning):
    """The calibration rows look like the rows the model was trained on: the bounds do not hold."""


class CodedRows(NamedTuple):
    """Calibration rows as `certify` needs them."""

    theta: Any  # (n, m) probabilities of the bits
    encoder: GroupEncoder  # of the groups
    seeded: bool = False  # the model draws with a fixed seed
    hard: bool = False  # nothing is drawn: theta is 0 or 1
    decision: bool = False  # the bits are the number of a decision or a class, not a code


def certify(
    source: Any,
    X: Any = None,
    *,
    sensitive_features: Any,
    y: Any = None,
    person: Any = None,
    beside: Sequence[Any] = (),
    levels: Any = None,
    confidence: float = 0.95,
    prior: Any = None,
    theorem: str = "shortest",
    simultaneous: bool = False,
    random_state: Any = None,
    **release: Any,
) -> Certificate:
    """Prove from held-out rows what anyone who receives a code or a decision can do with it.

    The rows must be independent draws from the population that have played no part in training, tuning or choosing the
    model. docs/certificate.md has the theorems and their proofs.

    Parameters
    ----------
    source : what is released about the calibration rows. A fitted model with a code, also at the end of a pipeline; any
        other fitted classifier, whose `predict` is taken; decisions of any kind (n,); a code as whole numbers 0 and 1
        (n, m); the probabilities of a random code's bits, as other numbers (n, m); or `CodedRows`, whose groups are
        known
    X : the calibration rows, for a model
    sensitive_features : their groups; several columns as the model was fitted, or their intersections
    y : labels, to bound the disparity within each label too (equalised odds)
    person : one identifier per row, where people have several rows: the mean of a person's rows counts, once
    beside : other models, or what they release about the same rows, that the recipient has as well
    levels : the cuts at which scores are rounded before they are released: source is scores (n,), or a classifier whose
        `predict_proba` gives that of the second class
    confidence : of each bound, or of all together if `simultaneous`
    prior : (K,) group probabilities at which the information is taken; the population's unknown ones by default
    theorem : "shortest" takes the shortest bound that is proved for this kind of release and these numbers of rows;
        "Hoeffding" takes Hoeffding's inequality, which is longer and costs no computing time
    random_state : seed, where draws stand for codes with too many words to list
    **release : `draws`, `eps`, `coarse`: what is released of each person's random code; see `Release`

    Examples
    --------
    >>> decisions = np.tile(["accept", "accept", "reject", "reject"], 1000)
    >>> certificate = certify(decisions, sensitive_features=np.arange(4000) % 2)
    >>> round(certificate.total_variation, 3)
    0.026
    """
    if theorem not in THEOREMS:
        raise InputError(f"must be one of {', '.join(THEOREMS)}.", argument="theorem", value=theorem)
    if not 0 < confidence < 1:
        raise InputError("must lie between 0 and 1, for example 0.95.", argument="confidence", value=confidence)
    coded = _beside(_read(source, X, sensitive_features, levels), beside, X, sensitive_features)
    theta, encoder, what = coded.theta, coded.encoder, Release(**release, hard=coded.hard)
    codes = encoder.transform(sensitive_features, n_rows=len(theta))
    strata, given = _strata(y, len(theta)), None if prior is None else _read_prior(prior, encoder)
    claims = len(strata) * sum(2 + (len(names) > 2) for names in encoder.names_)
    delta = (1 - confidence) / (claims if simultaneous else 1)
    who = None if person is None else _one_each(person, len(theta))
    bounds, exact, rng = [], True, np.random.default_rng(random_state)
    columns = zip(encoder.titles_, encoder.names_, codes.T, strict=True)
    for (title, names, column), (label, rows) in product(columns, strata):
        groups, fixed = column[rows], given if label is None else None
        own = None if who is None else who[rows]
        sums = group_sums(theta[rows], groups, len(names), what, person=own, rng=rng)
        people = np.bincount(groups, minlength=len(names)) if sums is None else sums.people
        if not people.all():
            shown = Estimates.nothing(len(names))
        elif sums is not None:
            shown = Estimates.of(sums, fixed)
        else:
            if who is not None:
                raise InputError("This code has too many words for a certificate by person.", remedy="Use fewer bits.")
            from fairbits.certificate.monte_carlo import drawn_estimates  # needs torch

            seed = int(rng.integers(2**31))
            shown = drawn_estimates(what.theta(theta[rows]), groups, len(names), fixed, delta, seed)
        _check_rows(people, names, delta - shown.spent)
        hard = what.hard and who is None  # the mean of a person's hard codes is not hard
        found = shown.upper_bounds(people, delta - shown.spent, fixed, hard, theorem)
        bounds.append(GroupBounds(title, label, dict(zip(names, people.tolist(), strict=True)), *found))
        exact = exact and shown.spent == 0
    at = "the population's group probabilities" if prior is None else f"group probabilities {np.asarray(prior)}"
    described = "the decision about a person" if coded.decision else what.describe()
    described += f", with what {len(beside)} other models release of the person" if beside else ""
    released = what.to_dict(theta.shape[1]) | ({"decision": True} if coded.decision else {})
    return Certificate(
        confidence,
        tuple(bounds),
        released,
        described,
        at,
        exact,
        simultaneous,
        coded.seeded,
        by_person=who is not None,
        beside=len(beside),
    )


def _read(
    source: Any, X: Any, sensitive_features: Any, levels: Any = None, encoder: GroupEncoder | None = None
) -> CodedRows:
    if isinstance(source, CodedRows):
        return source._replace(theta=np.asarray(source.theta, dtype=np.float64))
    source, X = fitted_code(source, X, sensitive_features)
    is_model = hasattr(source, "predict")
    if is_model and X is None:
        raise InputError("The calibration rows are missing.", remedy="Pass them as X.")
    if is_model:
        check_fresh(source, X)
    if hasattr(source, "code_probabilities") and levels is None:
        theta = np.asarray(source.code_probabilities(X), dtype=np.float64)
        if source.group_encoder_ is None:
            raise InputError("The estimator was fitted without sensitive columns.", remedy="Fit it with them first.")
        seeded = source.random_state is not None and not source.is_hard
        return CodedRows(theta, source.group_encoder_, seeded, source.is_hard)
    if is_model and levels is not None:
        values = np.asarray(source.predict_proba(X))[:, 1]
    else:
        values = np.asarray(source.predict(X) if is_model else source)
    encoder = encoder or getattr(source, "group_encoder_", None)
    if encoder is None:
        encoder = GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=len(values))
    if values.ndim == 1:
        cells = _decisions(values, levels)
        return CodedRows(binary_digits(cells, int(cells.max(initial=0)) + 1), encoder, hard=True, decision=True)
    hard = values.dtype.kind in "biu"  # by the type, not by looking at the values
    theta = np.asarray(values, dtype=np.float64) if values.dtype.kind in "biuf" else np.full((1, 1), np.nan)
    if theta.ndim != 2 or not bool(((theta >= 0) & (theta <= 1)).all()):
        raise InputError(
            f"The code must be probabilities of shape (rows, bits); it has shape {values.shape} and values from "
            f"{values.min()} to {values.max()}.",
            remedy="Pass code_probabilities, or an estimator and X.",
        )
    return CodedRows(theta, encoder, hard=hard)


def _decisions(values: np.ndarray, levels: Any) -> np.ndarray:
    """Return the number of every decision, or of every score's level."""
    if levels is not None:
        cuts = np.asarray(levels, dtype=np.float64)
        if cuts.ndim != 1 or not len(cuts) or (np.diff(cuts) <= 0).any() or not np.isfinite(values).all():
            raise InputError("must be rising cuts of numbers.", argument="levels", value=levels)
        return np.searchsorted(cuts, values, side="right")
    if pd.isna(values).any():
        raise InputError("Some decisions are missing.", remedy="Drop these rows, or name them, for example 'none'.")
    if values.dtype.kind == "f" and (values % 1 != 0).any():
        raise InputError("Scores can only be certified in levels.", remedy="Pass levels, such as [0.25, 0.5, 0.75].")
    return pd.factorize(values)[0]


def _beside(coded: CodedRows, others: Sequence[Any], X: Any, sensitive_features: Any) -> CodedRows:
    """Put the bits of other models beside the model's own: given the row, their draws are independent."""
    found = [coded, *(_read(other, X, sensitive_features, encoder=coded.encoder) for other in others)]
    lengths = {len(one.theta) for one in found}
    if len(lengths) > 1:
        raise InputError(f"The models release {sorted(lengths)} rows.", remedy="Pass them for the same rows.")
    theta = np.concatenate([one.theta for one in found], axis=1)
    hard, seeded = all(one.hard for one in found), any(one.seeded for one in found)
    return coded._replace(theta=theta, hard=hard, seeded=seeded, decision=coded.decision and hard)


def _one_each(person: Any, n: int) -> np.ndarray:
    """Return one identifier per row; a table of several columns becomes their combinations."""
    table = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person)
    if len(table) != n:
        raise InputError(f"There are {len(table):,} identifiers for {n:,} rows.", remedy="Pass one per row.")
    if table.isna().any(axis=None):
        raise InputError("Some identifiers of people are missing.", remedy="Fill them, or drop these rows.")
    return table.groupby(list(table.columns), sort=False).ngroup().to_numpy()


def check_fresh(estimator: Any, X: Any) -> None:
    """Warn if rows look like those a model was trained on, or chosen by."""
    seen = getattr(estimator, "training_rows_", None)
    reason = seen and seen.come_back(row_hashes(np.asarray(X)), index_hashes(X))
    if reason:
        problem = (
            f"These rows look like the rows the model was trained on or chosen by: {reason}. Certificates and audits "
            "hold only for rows that played no part in that."
        )
        warnings.warn(TrainingRowsWarning(problem, remedy="Use rows that were kept apart."), stacklevel=4)


def _strata(y: Any, n: int) -> list[tuple[Any, np.ndarray]]:
    """Return (None, all rows) and, with labels, (label, its rows) for each."""
    everyone, labels = (None, np.arange(n)), np.asarray(y)
    if y is None:
        return [everyone]
    if len(labels) != n:
        raise InputError(f"y has {len(labels)} values for {n} calibration rows.", remedy="Pass one per row.")
    if missing := int(pd.isna(labels).sum()):
        raise InputError(f"{missing} labels are missing.", remedy="Drop these rows, or certify without labels.")
    return [everyone, *((label, np.flatnonzero(labels == label)) for label in np.unique(labels).tolist())]


def _read_prior(prior: Any, encoder: GroupEncoder) -> np.ndarray:
    if len(encoder.names_) > 1:
        raise InputError("A prior is for one sensitive column.", remedy="Certify the columns one by one.")
    values, k = np.array(prior, dtype=np.float64), len(encoder.names_[0])
    if values.shape != (k,) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        raise InputError(f"must be {k} positive numbers that sum to 1.", argument="prior", value=prior)
    return values


def _check_rows(counts: np.ndarray, names: list[str], delta: float) -> None:
    small = int(counts.argmin())
    few = f"{names[small]!r} has {counts[small]}"
    alone = hoeffding_deviation(counts[[small]], 1.0, delta)
    if alone >= LARGE_DEVIATION:
        cost = f"{min(alone, 1):.2f} to the bound on the disparity"
        problem = f"Group {few} calibration rows, so few that they alone add {cost}."
        warnings.warn(SmallGroupWarning(problem, remedy="Calibrate on more rows, or merge groups."), stacklevel=3)
