"""From held-out rows to a certificate."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairbits.certificate.certificate_record import Certificate, GroupBounds
from fairbits.certificate.deviations import ASYMPTOTIC_ROWS, information_bound, one_set_deviation
from fairbits.certificate.estimates import Estimates, estimates
from fairbits.certificate.releasing import Release, fitted_code
from fairbits.encoding import GroupEncoder, index_hashes, row_hashes
from fairbits.errors import InputError, InputWarning

LARGE_DEVIATION = 0.25  # a group whose rows alone cost this much is too small to certify


class SmallGroupWarning(InputWarning):
    """A group has so few calibration rows that its bounds say little."""


class TrainingRowsWarning(InputWarning):
    """The calibration rows look like the rows the model was trained on: the bounds do not hold."""


def certify(
    theta_or_estimator: Any,
    X: Any = None,
    *,
    sensitive_features: Any,
    y: Any = None,
    confidence: float = 0.95,
    draws: int = 1,
    eps: float = 0.0,
    coarse: Any = None,
    prior: Any = None,
    asymptotic: bool = False,
    simultaneous: bool = False,
    generator: torch.Generator | None = None,
) -> Certificate:
    """Prove from held-out rows what anyone who receives the code can do with it.

    The rows must be independent draws from the population that have played no part in training, tuning or choosing the
    model. docs/certificate.md has the theorem and its proof.

    Parameters
    ----------
    theta_or_estimator : the bits' probabilities (n, m) of the calibration rows, or a fitted estimator with a code, also
        at the end of a pipeline
    X : the calibration rows, for an estimator
    sensitive_features : their groups; several columns as the estimator was fitted, or their intersections
    y : labels, to bound the disparity within each label too (equalised odds)
    confidence : of each bound, or of all together if `simultaneous`
    draws, eps, coarse : what is released of each person; see `Release`
    prior : (K,) group probabilities at which the information is taken; the population's unknown ones by default
    asymptotic : normal approximation instead of Hoeffding's inequality for total variation and balanced accuracy
    generator : for estimates by drawing (codes of more than 20 bits, coarse codes)

    Examples
    --------
    >>> theta = np.full((4000, 3), 0.5)
    >>> certificate = certify(theta, sensitive_features=np.arange(4000) % 2)
    >>> round(certificate.total_variation, 3)
    0.039
    """
    theta, encoder, seeded = _read(theta_or_estimator, X, sensitive_features)
    return certify_groups(
        theta,
        encoder,
        sensitive_features,
        y=y,
        confidence=confidence,
        release=Release(draws, eps, coarse),
        prior=prior,
        asymptotic=asymptotic,
        simultaneous=simultaneous,
        generator=generator,
        seeded=seeded,
    )


def certify_groups(
    theta: Tensor,
    encoder: GroupEncoder,
    sensitive_features: Any,
    *,
    y: Any = None,
    confidence: float = 0.95,
    release: Release | None = None,
    prior: Any = None,
    asymptotic: bool = False,
    simultaneous: bool = False,
    generator: torch.Generator | None = None,
    seeded: bool = False,
) -> Certificate:
    """Certify a code by its bits' probabilities, for groups that are known already; the rest as in `certify`."""
    if not 0 < confidence < 1:
        raise InputError("must lie between 0 and 1, for example 0.95.", argument="confidence", value=confidence)
    release = release or Release()
    codes = encoder.transform(sensitive_features, n_rows=len(theta))
    strata = _strata(y, len(theta))
    claims = len(strata) * sum(2 + (len(names) > 2) for names in encoder.names_)
    delta = (1 - confidence) / (claims if simultaneous else 1)
    bounds, exact = [], True
    for column, (title, names) in enumerate(zip(column_titles(encoder), encoder.names_, strict=True)):
        for label, rows in strata:
            part = torch.from_numpy(codes[rows, column])
            counts, k = np.bincount(part, minlength=len(names)), len(names)
            fixed = None if prior is None or label is not None else _read_prior(prior, k, len(encoder.names_))
            if (counts == 0).any():  # nothing is known
                shown = Estimates(np.ones((k, k)), 1.0, float(np.log2(k)), 0.0)
            else:
                shown = estimates(theta[rows], part, k, release, fixed, delta, generator)
            exact = exact and shown.spent == 0
            _check_rows(counts, names, delta - shown.spent, asymptotic)
            bounds.append(_bounds(title, label, names, counts, shown, delta, fixed, asymptotic))
    return Certificate(
        confidence=confidence,
        bounds=tuple(bounds),
        release=release.to_dict(theta.shape[1]),
        release_words=release.describe(),
        prior="the population's group probabilities" if prior is None else f"group probabilities {np.asarray(prior)}",
        exact=exact,
        asymptotic=asymptotic,
        simultaneous=simultaneous,
        seeded=seeded,
    )


def _read(source: Any, X: Any, sensitive_features: Any) -> tuple[Tensor, GroupEncoder, bool]:
    """Return theta in double precision, the group encoder, and whether the estimator draws with a seed."""
    source, X = fitted_code(source, X)
    if hasattr(source, "code_probabilities"):
        if X is None:
            raise InputError("The calibration rows are missing.", remedy="Pass them as X.")
        theta = torch.from_numpy(np.asarray(source.code_probabilities(X), dtype=np.float64))
        check_fresh(source, X)
        encoder = source.group_encoder_
        if encoder is None:
            raise InputError("The estimator was fitted without sensitive columns.", remedy="Fit it with them first.")
        return theta, encoder, source.random_state is not None
    if hasattr(source, "predict"):
        raise InputError(f"{type(source).__name__} has no random code to certify.", remedy="Use `audit` instead.")
    theta = torch.from_numpy(np.require(np.asarray(source), np.float64, "W"))
    if theta.dim() != 2 or not bool(((theta >= 0) & (theta <= 1)).all()):
        raise InputError(
            f"The code must be probabilities of shape (rows, bits); it has shape {tuple(theta.shape)} and values from "
            f"{float(theta.min())} to {float(theta.max())}.",
            remedy="Pass code_probabilities, or an estimator and X.",
        )
    return theta, GroupEncoder(min_group_size=1).fit(sensitive_features, n_rows=len(theta)), False


def check_fresh(estimator: Any, X: Any) -> None:
    """Warn if rows look like those a model was trained on, or chosen by."""
    seen = getattr(estimator, "training_rows_", None)
    reason = seen and seen.come_back(row_hashes(np.asarray(X)), index_hashes(X))
    if reason:
        warnings.warn(
            TrainingRowsWarning(
                f"These rows look like the rows the model was trained on or chosen by: {reason}. Certificates and "
                "audits hold only for rows that played no part in that.",
                remedy="Use rows that were kept apart.",
            ),
            stacklevel=4,
        )


def column_titles(encoder: GroupEncoder) -> list[str]:
    """Return what to call the coded columns of an encoder."""
    return encoder.columns_ if len(encoder.names_) > 1 else [" x ".join(encoder.columns_)]


def _strata(y: Any, n: int) -> list[tuple[Any, np.ndarray]]:
    """Return (None, all rows) and, with labels, (label, its rows) for each."""
    everything: list[tuple[Any, np.ndarray]] = [(None, np.arange(n))]
    if y is None:
        return everything
    y = np.asarray(y)
    if len(y) != n:
        raise InputError(f"y has {len(y)} values for {n} calibration rows.", remedy="Pass one per row.")
    if pd.isna(y).any():
        missing = int(pd.isna(y).sum())
        raise InputError(f"{missing} labels are missing.", remedy="Drop these rows, or certify without labels.")
    return everything + [(label, np.flatnonzero(y == label)) for label in np.unique(y).tolist()]


def _read_prior(prior: Any, n_groups: int, n_columns: int) -> torch.Tensor:
    if n_columns > 1:
        raise InputError("A prior is for one sensitive column.", remedy="Certify the columns one by one.")
    values = torch.as_tensor(np.asarray(prior, dtype=np.float64))
    if values.shape != (n_groups,) or not bool((values > 0).all()) or abs(float(values.sum()) - 1) > 1e-6:
        raise InputError(f"must be {n_groups} positive numbers that sum to 1.", argument="prior", value=prior)
    return values


def _bounds(column, label, names, counts, shown: Estimates, delta, prior, asymptotic) -> GroupBounds:
    delta, k = delta - shown.spent, len(names)
    pairs = [(s, r) for s in range(k) for r in range(s)]
    distance = max(
        shown.total_variation[s, r] + one_set_deviation(counts[[s, r]], 1.0, delta, asymptotic=asymptotic)
        for s, r in pairs
    )
    guess = (1 + distance) / 2  # of two groups: the same claim
    if k > 2:
        guess = shown.best_guess + one_set_deviation(counts, 1 / k, delta, asymptotic=asymptotic)
    return GroupBounds(
        column=column,
        label=label,
        rows=dict(zip(names, counts.tolist(), strict=True)),
        total_variation=float(min(1.0, distance)),
        balanced_accuracy=float(min(1.0, guess)),
        information=information_bound(shown.information, counts, delta, None if prior is None else prior.numpy()),
        estimated_total_variation=float(max(shown.total_variation[s, r] for s, r in pairs)),
        estimated_information=shown.information,
    )


def _check_rows(counts: np.ndarray, names: list[str], delta: float, asymptotic: bool) -> None:
    small = int(counts.argmin())
    if asymptotic and counts[small] < ASYMPTOTIC_ROWS:
        raise InputError(
            f"The normal approximation needs {ASYMPTOTIC_ROWS} calibration rows in every group; {names[small]!r} has "
            f"{counts[small]}.",
            remedy="Use asymptotic=False, which holds at any size.",
        )
    alone = one_set_deviation(counts[[small]], 1.0, delta)
    if alone >= LARGE_DEVIATION:
        warnings.warn(
            SmallGroupWarning(
                f"Group {names[small]!r} has {counts[small]} calibration rows, so few that they alone add "
                f"{min(alone, 1):.2f} to the bound on the disparity.",
                remedy="Calibrate on more rows, or merge groups.",
            ),
            stacklevel=3,
        )
