"""From held-out rows to a certificate."""

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.certificate.certificate_record import Certificate, GroupBounds
from fairbits.certificate.confidence_bounds import Estimates, GroupSums, group_sums
from fairbits.certificate.deviations import HOEFFDING, hoeffding_deviation
from fairbits.certificate.released_code import Release, binary_digits, certified_decision, fitted_code
from fairbits.encoding import GroupEncoder, index_hashes, row_hashes
from fairbits.encoding.recognition import person_numbers
from fairbits.errors import InputError, InputTypeError, InputWarning
from fairbits.settings import check_value

THEOREMS = ("shortest", HOEFFDING)
LARGE_DEVIATION = 0.25  # a group whose rows alone cost this much is too small to certify


class SmallGroupWarning(InputWarning):
    """A group has so few calibration rows that its bounds are loose."""


class TrainingRowsWarning(InputWarning):
    """The calibration rows look like the rows the model was trained on: the bounds do not hold."""


class CodedRows(NamedTuple):
    """Calibration rows as `certify` needs them."""

    theta: Any  # (n, m) probabilities of the bits
    encoder: Any  # GroupEncoder of the groups
    seeded: bool = False  # the model draws with a fixed seed
    hard: bool = False  # nothing is drawn: theta is 0 or 1
    decision: bool = False  # the bits are the number of a decision or a class, not a code
    named: Any = None  # the decisions in the order of their numbers, unless these are levels of a score


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
    beside : other models, or what they release about the same rows, which the recipient also has
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
    0.027
    """
    if unknown := set(release) - {"draws", "eps", "coarse"}:
        remedy = "Leave it out; proved bounds are as short as `asymptotic` ones of version 0.1."
        raise InputTypeError(f"certify has no option {min(unknown)!r}.", remedy=remedy)
    coded = _beside(coded_rows(source, X, sensitive_features, levels), beside, X, sensitive_features)
    if beside and {"eps", "coarse"} & set(release):
        raise InputError("eps and coarse cannot be combined with beside.", remedy="Leave them out.")
    what, rng = Release(**release, hard=coded.hard), np.random.default_rng(random_state)
    rows = numbered_rows(coded, sensitive_features, y, person)
    names = coded.encoder.names_
    claim = Claims(confidence, theorem, simultaneous, None if prior is None else read_prior(prior, names))
    delta, found = claim.delta(names, 1 + len(rows.labels)), []
    for (column, title), label in product(enumerate(coded.encoder.titles_), [None, *rows.labels]):
        theta, groups, who = rows.stratum(column, label)
        k, drawn = len(names[column]), None
        sums = group_sums(theta, groups, k, what, person=who, rng=rng)
        if sums is None:  # too many words to list
            if who is not None:
                raise InputError("This code has too many words for a certificate by person.", remedy="Use fewer bits.")
            sums = GroupSums(np.zeros((k, 1)), np.bincount(groups, minlength=k))
            if sums.people.all():
                from fairbits.certificate.monte_carlo import drawn_estimates  # needs torch

                at, seed = claim.prior if label is None else None, int(rng.integers(2**31))
                drawn = drawn_estimates(what.theta(theta), groups, k, at, delta, seed)
        found.append(Stratum(title, label, names[column], sums, drawn))
    return certificate_of(found, claim, coded, what, by_person=person is not None, beside=len(beside))


class Rows(NamedTuple):
    """Calibration rows as numbers."""

    theta: np.ndarray  # (n, m)
    groups: np.ndarray  # (n, columns)
    y: np.ndarray | None
    labels: list[Any]  # of y
    person: np.ndarray | None

    def stratum(self, column: int, label: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the bits, the groups of a column and the people of all rows, or of those with a label."""
        own = slice(None) if label is None else self.y == label
        return self.theta[own], self.groups[own, column], None if self.person is None else self.person[own]


def numbered_rows(coded: CodedRows, sensitive_features: Any, y: Any = None, person: Any = None) -> Rows:
    """Return coded rows with the numbers of their groups and people."""
    n, labels, values = len(coded.theta), [], None
    groups = coded.encoder.transform(sensitive_features, n_rows=n)
    if y is not None:
        values = np.asarray(y)
        if len(values) != n:
            raise InputError(f"y has {len(values)} values for {n} calibration rows.", remedy="Pass one per row.")
        if missing := int(pd.isna(values).sum()):
            raise InputError(f"{missing} labels are missing.", remedy="Drop these rows, or certify without labels.")
        labels = np.unique(values).tolist()
    return Rows(coded.theta, groups, values, labels, None if person is None else person_numbers(person, n))


class Stratum(NamedTuple):
    """What the rows of a sensitive column, or of one label among them, show."""

    title: str
    label: Any
    names: list[str]
    sums: GroupSums
    drawn: Estimates | None = None  # where there are too many words for sums

    def estimates(self, prior: np.ndarray | None) -> Estimates:
        """Return what these rows show."""
        if self.drawn is not None:
            return self.drawn
        return Estimates.of(self.sums, prior) if self.sums.people.all() else Estimates.nothing(len(self.names))


class Claims(NamedTuple):
    """What a certificate is to say, and at which confidence."""

    confidence: float = 0.95
    theorem: str = "shortest"
    simultaneous: bool = False
    prior: np.ndarray | None = None

    def delta(self, names: list[list[str]], n_strata: int) -> float:
        """Return the chance of error of each number, and check what the user asked for."""
        check_value("theorem", self.theorem, one_of=THEOREMS)
        check_value("confidence", self.confidence, above=0, below=1)
        numbers = n_strata * sum(2 + (len(own) > 2) for own in names)
        return (1 - self.confidence) / (numbers if self.simultaneous else 1)


def certificate_of(
    found: list[Stratum], claim: Claims, coded: CodedRows, release: Release, *, by_person: bool, beside: int = 0
) -> Certificate:
    """Return the certificate of what rows show."""
    everyone = [stratum for stratum in found if stratum.label is None]
    delta = claim.delta([stratum.names for stratum in everyone], len(found) // len(everyone))
    bounds, exact = [], True
    hard = release.hard and not by_person  # the mean of a person's hard codes is not hard
    binary = hard and release.coarse is None and coded.theta.shape[1] == 1
    for stratum in found:
        people, fixed = stratum.sums.people, claim.prior if stratum.label is None else None
        shown = stratum.estimates(fixed)
        left = delta - shown.spent
        _check_rows(people, stratum.names, left)
        ones = stratum.sums.words[:, 1].astype(np.int64) if binary else None
        numbers = shown.upper_bounds(people, left, fixed, hard, claim.theorem, ones)
        rows = dict(zip(stratum.names, people.tolist(), strict=True))
        bounds.append(GroupBounds(stratum.title, stratum.label, rows, *numbers))
        exact = exact and shown.spent == 0
    at = "the population's group probabilities" if claim.prior is None else f"group probabilities {claim.prior}"
    described = "the decision about a person" if coded.decision else release.describe()
    described += f" and what {beside} other model{'s' * (beside > 1)} released about the person" if beside else ""
    released = release.to_dict(coded.theta.shape[1]) | ({"decision": True} if coded.decision else {})
    facts = claim.confidence, tuple(bounds), released, described, at, exact, claim.simultaneous, coded.seeded
    return Certificate(*facts, by_person=by_person, beside=beside)


def coded_rows(
    source: Any, X: Any, sensitive_features: Any, levels: Any = None, encoder: GroupEncoder | None = None
) -> CodedRows:
    """Return what a source releases about rows, as `certify` takes it."""
    if isinstance(source, CodedRows):
        return source._replace(theta=np.asarray(source.theta, dtype=np.float64))
    classes = getattr(source, "classes_", ())
    if certified_decision(source) and X is not None:  # its code is not certified
        check_fresh(*fitted_code(source, X, sensitive_features))
        source, X, encoder = source.predict(X, sensitive_features=sensitive_features), None, source.group_encoder_
    source, X = fitted_code(source, X, sensitive_features)
    is_model = hasattr(source, "predict") or hasattr(source, "code_probabilities")
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
        values = _scores(source, X)
    else:
        values = np.asarray(source.predict(X) if is_model else source)
    encoder = encoder or getattr(source, "group_encoder_", None)
    if encoder is None:
        encoder = GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=len(values))
    if values.ndim == 1:
        cells, named = decision_numbers(values, levels)
        possible = len(levels) + 1 if levels is not None else max(len(named), len(classes))
        return CodedRows(binary_digits(cells, possible), encoder, hard=True, decision=True, named=named)
    return _given_code(values, encoder)


def _given_code(values: np.ndarray, encoder: GroupEncoder) -> CodedRows:
    """Return a code that was passed as bits, or as their probabilities."""
    hard = values.dtype.kind in "biu"  # by the type, not by looking at the values
    theta = np.asarray(values, dtype=np.float64) if values.dtype.kind in "biuf" else np.full((1, 1), np.nan)
    if theta.ndim != 2 or not bool(((theta >= 0) & (theta <= 1)).all()):
        raise InputError(
            f"The code must be probabilities of shape (rows, bits); it has shape {values.shape} and values from "
            f"{values.min()} to {values.max()}.",
            remedy="Pass code_probabilities, or an estimator and X.",
        )
    return CodedRows(theta, encoder, hard=hard)


def _scores(model: Any, X: Any) -> np.ndarray:
    """Return the probability of the second class, of which levels are made."""
    if not hasattr(model, "predict_proba"):
        problem = f"{type(model).__name__} has no predict_proba, of which levels are made."
        raise InputError(problem, remedy="Pass its scores about these rows in place of the model and X.")
    return np.asarray(model.predict_proba(X))[:, 1]


def decision_numbers(values: np.ndarray, levels: Any) -> tuple[np.ndarray, Any]:
    """Return the number of every decision, or of every score's level, and which decisions the numbers stand for."""
    if levels is not None:
        cuts = np.asarray(levels, dtype=np.float64)
        numbers = values.dtype.kind in "biuf" and bool(np.isfinite(values).all())
        if cuts.ndim != 1 or not len(cuts) or (np.diff(cuts) <= 0).any() or not numbers:
            raise InputError("must be rising cuts of numbers.", argument="levels", value=levels)
        return np.searchsorted(cuts, values, side="right"), None
    if pd.isna(values).any():
        raise InputError("Some decisions are missing.", remedy="Drop these rows, or name them, for example 'none'.")
    if values.dtype.kind == "f" and (values % 1 != 0).any():
        raise InputError("Scores can only be certified in levels.", remedy="Pass levels, such as [0.25, 0.5, 0.75].")
    return pd.factorize(values)


def _beside(coded: CodedRows, others: Sequence[Any], X: Any, sensitive_features: Any) -> CodedRows:
    """Put the bits of other models beside the model's own: given the row, their draws are independent."""
    found = [coded, *(coded_rows(other, X, sensitive_features, encoder=coded.encoder) for other in others)]
    lengths = {len(one.theta) for one in found}
    if len(lengths) > 1:
        raise InputError(f"The models release {sorted(lengths)} rows.", remedy="Pass them for the same rows.")
    theta = np.concatenate([one.theta for one in found], axis=1)
    hard, seeded = all(one.hard for one in found), any(one.seeded for one in found)
    return coded._replace(theta=theta, hard=hard, seeded=seeded, decision=coded.decision and hard)


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


def read_prior(prior: Any, names: list[list[str]]) -> np.ndarray:
    """Return the probabilities of the groups of one column."""
    if len(names) > 1:
        raise InputError("A prior is for one sensitive column.", remedy="Certify the columns one by one.")
    values, k = np.array(prior, dtype=np.float64), len(names[0])
    if values.shape != (k,) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        raise InputError(f"must be {k} positive numbers that sum to 1.", argument="prior", value=prior)
    return values


def _check_rows(counts: np.ndarray, names: list[str], delta: float) -> None:
    small = int(counts.argmin())
    few = f"{names[small]!r} has {counts[small]}"
    alone = hoeffding_deviation(counts[[small]], 1.0, delta)
    if alone >= LARGE_DEVIATION:
        cost = f"{min(alone, 1):.2f} to the bound on the disparity"
        problem = f"Group {few} calibration rows. So few rows alone may add {cost}."
        warnings.warn(SmallGroupWarning(problem, remedy="Calibrate on more rows, or merge groups."), stacklevel=3)
