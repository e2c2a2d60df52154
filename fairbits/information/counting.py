"""The information of codes already drawn, by counting them."""

import warnings

import torch
from torch import Tensor

from fairbits.errors import InputError

from .joint import table_information
from .weighed_groups import group_weights


class SparseCountsWarning(UserWarning):
    """There are too few rows for the number of possible codes: counts overstate the information."""


@torch.no_grad()
def counted_information(
    codes: Tensor,
    groups: Tensor,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Return I(T;S) of the histogram of drawn codes, in bits: the paper supplement's BinaryMI.

    Plug-in information of the relative frequencies of (code, group). Against the law the codes were drawn
    from it errs upwards by about (2^m - 1)(K - 1) / (2 n ln 2), and it saturates at H(S) as soon as all
    codes differ, whatever the network does; `joint_information` of the bits' probabilities has neither
    fault. Counts have no gradient.

    Parameters
    ----------
    codes : (n, m) of 0 and 1, any type
    groups, weights, prior, n_groups : as in `word_tables`, one table only

    Warns
    -----
    SparseCountsWarning : when 2^m > n / 10

    Examples
    --------
    >>> codes = torch.tensor([[0], [0], [0], [1]] * 10)
    >>> counted_information(codes, torch.tensor([0, 0, 1, 1] * 10))
    tensor(0.3113)
    """
    if codes.dim() != 2 or ((codes != 0) & (codes != 1)).any():
        raise InputError(f"codes must be 0 or 1 of shape (rows, bits), got {codes.dtype} of {tuple(codes.shape)}")
    n, m = codes.shape
    if 2**m > n / 10:
        warnings.warn(
            f"{n} rows for 2^{m} possible codes: the counted information errs upwards; draw from at least "
            f"10 * 2^{m} rows, or use joint_information on the probabilities",
            SparseCountsWarning,
            stacklevel=3,  # past no_grad's wrapper
        )
    shape = codes if codes.is_floating_point() else codes.to(torch.get_default_dtype())
    row_weights, prior = group_weights(
        shape, groups, weights=weights, prior=prior, n_groups=n_groups, check_values=True
    )
    words, word = codes.unique(dim=0, return_inverse=True)
    tables = row_weights.new_zeros(prior.shape[-1], len(words)).index_add(1, word, row_weights)
    return table_information(tables, prior)
