"""The code of the optimal front as a representation: posteriors to words, by linear programmes."""

from typing import Any

import numpy as np
import torch

from fairbits.certificate.released_code import binary_digits
from fairbits.estimators.optimal_front import optimal_codes
from fairbits.information import total_variation
from fairbits.rivals.hard_words import HardWordsMixin
from fairbits.rivals.posterior_rule import PosteriorRule
from fairbits.settings import setting

SHARES = np.arange(11) / 10  # of the limit: codes to choose from


class LinearProgrammeCode(HardWordsMixin, PosteriorRule):
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

    @property
    def word_count(self) -> int:
        return self.n_words

    def choose(self, joint: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        label, group = joint.sum(2), joint.sum(1)
        options = {"n_words": self.n_words, "bins": self.bins, "starts": self.starts}
        codes = optimal_codes(label, group, self.limit * SHARES, **options)

        def disparity(words: np.ndarray) -> float:
            return float(total_variation(torch.from_numpy(binary_digits(words, self.n_words)), torch.from_numpy(s)))

        hard = ((code, code.word_probabilities(label, group).argmax(1)) for code in reversed(codes))  # the best first
        self.code_, words = self.first_within((found, disparity(found[1])) for found in hard)
        self.count_decoder(words, y, joint.shape[1])

    def words(self, X: Any) -> np.ndarray:
        """Return the number of each row's word.  (n,)"""
        joint = self.posterior(X)
        return self.code_.word_probabilities(joint.sum(2), joint.sum(1)).argmax(1)
