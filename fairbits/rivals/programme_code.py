"""The code of the optimal front as a representation: posteriors to words, by linear programmes."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_array, check_is_fitted

from fairbits.certificate.released_code import binary_digits
from fairbits.errors import InputError
from fairbits.estimators.codes import BitsMixin
from fairbits.estimators.optimal_front import optimal_codes
from fairbits.information import total_variation
from fairbits.rivals.posterior_rule import PosteriorRule
from fairbits.settings import setting

SHARES = np.arange(11) / 10  # of the limit: codes to choose from


class LinearProgrammeCode(BitsMixin, PosteriorRule):
    """Give each row one of a few words: the code of `optimal_front`, made hard.

    Cells of the posteriors (p(y|x), p(s|x)) get words by linear programmes, for the most information about the label
    within a limit of the total variation between groups. Of the few cells whose word would be random all rows get the
    likelier word. So a row has one code at every call, and the certificate covers every function of it,
    `predict_proba` included. The programme's limit is lowered until the code of the training rows is within `limit`,
    with the groups as recorded; if that never happens, the code that comes closest is taken.

    Parameters
    ----------
    limit : largest total variation between two groups of the training rows
    n_words : words of the code
    bins : there are at most bins**2 cells
    starts : alternations for each limit; see `optimal_codes`

    The other parameters are those of `PosteriorRule`.
    """

    n_words: int = setting(8, at_least=2, whole=True)
    bins: int = setting(24, at_least=2, whole=True)
    starts: int = setting(1, at_least=1, whole=True)

    condition_on_label: ClassVar[bool] = False  # what `held_out_scores` asks of a code

    @property
    def code_size(self) -> int:
        """Bits that write a word."""
        return max(1, int(self.n_words - 1).bit_length())

    def choose(self, joint: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        label, group = joint.sum(2), joint.sum(1)
        options = {"n_words": self.n_words, "bins": self.bins, "starts": self.starts}
        codes = optimal_codes(label, group, self.limit * SHARES, **options)

        def disparity(words: np.ndarray) -> float:
            return float(total_variation(torch.from_numpy(binary_digits(words, self.n_words)), torch.from_numpy(s)))

        hard = ((code, code.word_probabilities(label, group).argmax(1)) for code in reversed(codes))  # the best first
        self.code_, words = self.first_within((found, disparity(found[1])) for found in hard)
        counts, shares = np.zeros((2**self.code_size, joint.shape[1])), np.bincount(y) / len(y)
        np.add.at(counts, (words, y), 1)
        self.decoder_ = (counts + shares) / (counts.sum(1, keepdims=True) + 1)  # (words, C)

    def words(self, X: Any) -> np.ndarray:
        """Return the number of each row's word.  (n,)"""
        joint = self.posterior(X)
        return self.code_.word_probabilities(joint.sum(2), joint.sum(1)).argmax(1)

    def code_probabilities(self, X: Any) -> np.ndarray:
        """Return the bits of the words as their probabilities, 0 or 1, for certificates and audits.  (n, code_size)"""
        return binary_digits(self.words(X), self.n_words)

    is_hard = True  # no draw: a row has one code

    def transform(self, X: Any) -> np.ndarray:
        """Return the word of each row, as bits: the same at every call.  (n, code_size) uint8"""
        return self.code_probabilities(X).astype(np.uint8)

    def decode(self, codes: Any) -> np.ndarray:
        """Return the class probabilities of words: their classes among the training rows.  (n, classes)"""
        check_is_fitted(self, "decoder_")
        codes = check_array(codes, dtype=np.int64)
        if codes.shape[1] != self.code_size or not np.isin(codes, (0, 1)).all():
            raise InputError(f"codes must be bits of shape (n, {self.code_size}); they have shape {codes.shape}.")
        return self.decoder_[codes @ (1 << np.arange(self.code_size - 1, -1, -1))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class given a row's word.  (n, classes)"""
        return self.decode(self.transform(X))
