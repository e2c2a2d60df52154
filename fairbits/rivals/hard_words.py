"""Codes of numbered words: what they share once each row has the number of its word."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from fairbits.certificate.released_code import binary_digits, binary_number
from fairbits.errors import InputError
from fairbits.estimators.codes import BitsMixin


class HardWordsMixin(BitsMixin):
    """Give each row one word (`words`) of `word_count`, and read the class off it.

    So a row has one code at every call, and the certificate covers every function of it, `predict_proba` included.
    """

    decoder_: np.ndarray  # (words, classes)

    is_hard: ClassVar[bool] = True  # no draw: a row has one code
    condition_on_label: ClassVar[bool] = False  # what `held_out_scores` asks of a code

    @property
    def word_count(self) -> int:
        """Words of the code, two or more."""
        raise NotImplementedError(f"{type(self).__name__} does not count its words.")

    def words(self, X: Any) -> np.ndarray:
        """Return the number of each row's word.  (n,)"""
        raise NotImplementedError(f"{type(self).__name__} does not define its words.")

    def count_decoder(self, words: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Count p(y|word) of training rows, with one row's worth of the labels' shares added to every word."""
        counts, shares = np.zeros((2**self.code_size, n_classes)), np.bincount(y, minlength=n_classes) / len(y)
        np.add.at(counts, (words, y), 1)
        self.decoder_ = (counts + shares) / (counts.sum(1, keepdims=True) + 1)

    @property
    def code_size(self) -> int:
        """Bits that write a word."""
        return max(1, int(self.word_count - 1).bit_length())

    def code_probabilities(self, X: Any) -> np.ndarray:
        """Return the bits of the words as their probabilities, 0 or 1, for certificates and audits.  (n, code_size)"""
        return binary_digits(self.words(X), self.word_count)

    def transform(self, X: Any) -> np.ndarray:
        """Return the word of each row, as bits: the same at every call.  (n, code_size) uint8"""
        return self.code_probabilities(X).astype(np.uint8)

    def decode(self, codes: Any) -> np.ndarray:
        """Return the class probabilities of words: their classes among the training rows.  (n, classes)"""
        check_is_fitted(self, "decoder_")
        codes = check_array(codes, dtype=np.int64)
        if codes.shape[1] != self.code_size or not np.isin(codes, (0, 1)).all():
            raise InputError(f"codes must be bits of shape (n, {self.code_size}); they have shape {codes.shape}.")
        return self.decoder_[binary_number(codes)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class given a row's word.  (n, classes)"""
        return self.decode(self.transform(X))
