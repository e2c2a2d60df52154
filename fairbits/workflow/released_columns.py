"""The columns that a model's codes become in a file: bits, packed bits, the class, the probabilities of the classes."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.certificate.keyed_draws import DrawKey
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, RowPiece

WIDTHS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
CODES, CLASSES, PROBABILITIES = "codes", "classes", "probabilities"


class Columns(NamedTuple):
    """What to write of every row."""

    what: str  # CODES, CLASSES or PROBABILITIES, which has the classes, too
    packed: bool = False  # all bits of a code in one whole number
    person: tuple[str, ...] = ()  # the columns that name a person, for keyed draws
    key: str | None = None  # the file of the key
    leading_zeros: str | None = None  # "same" or "different": whether 7 and 007 are the same person

    def to_dict(self) -> dict[str, Any]:
        """Return what the bytes of a part depend on, ready for JSON."""
        keyed = (
            {"person": list(self.person), "key": _key(self.key).name, "zeros": self.leading_zeros} if self.key else {}
        )
        return {"what": self.what, "packed": self.packed, **keyed}

    def names(self, model: FittedModel) -> list[str]:
        """Return the names of the columns."""
        if self.what == CODES:
            return ["code"] if self.packed else list(model.method.get_feature_names_out())
        more = [f"probability_{name}" for name in model.method.classes_] if self.what == PROBABILITIES else []
        return ["prediction", *more]


def made_columns(model: FittedModel, piece: RowPiece, columns: Columns) -> pd.DataFrame:
    """Return what a model makes of rows; of the same person always the same."""
    method = model.method
    if model.decides:
        return pd.DataFrame({"prediction": method.predict(piece.X)})
    codes = made_codes(model, piece, columns)
    if columns.what == CODES:
        return code_frame(model, codes, packed=columns.packed)
    return class_frame(model, codes, probabilities=columns.what == PROBABILITIES)


def made_codes(model: FittedModel, piece: RowPiece, columns: Columns) -> np.ndarray:
    """Return the codes of rows: hard ones, or those that a key draws."""
    if columns.key is None or model.is_hard:
        return model.method.transform(piece.X)
    draws = 1 if model.limit is None else model.limit.draws
    people = piece.more[list(columns.person)]
    return _key(columns.key).draw(model.method, piece.X, people, draws=draws, leading_zeros=columns.leading_zeros)


@lru_cache(1)
def _key(path: str) -> DrawKey:
    return DrawKey.read(path)


def code_frame(model: FittedModel, codes: np.ndarray, *, packed: bool = False) -> pd.DataFrame:
    """Return codes as a column for each bit, or all in one."""
    if packed:
        return pd.DataFrame({"code": packed_codes(codes)})
    return pd.DataFrame(codes, columns=list(model.method.get_feature_names_out()))


def class_frame(model: FittedModel, codes: np.ndarray, *, probabilities: bool = False) -> pd.DataFrame:
    """Return the class that a recipient reads off each code, and the probability of each class."""
    words, places = np.unique(codes, axis=0, return_inverse=True)
    return prediction_frame(model, model.method.decode(words)[places], probabilities=probabilities)


def prediction_frame(model: FittedModel, found: np.ndarray, *, probabilities: bool = False) -> pd.DataFrame:
    """Return the most probable class of each row, and the probability of each."""
    classes = model.method.classes_
    scores = {f"probability_{name}": own for name, own in zip(classes, found.round(6).T, strict=True)}
    return pd.DataFrame({"prediction": classes[found.argmax(1)], **(scores if probabilities else {})})


def packed_codes(codes: np.ndarray) -> np.ndarray:
    """Return the bits of each code as one whole number, the first bit most significant.

    >>> packed_codes(np.array([[0, 1, 1], [1, 0, 0]], dtype=np.uint8))
    array([3, 4], dtype=uint8)
    """
    m = codes.shape[1]
    width = next((width for width in WIDTHS if m <= width), None)
    if width is None:
        raise InputError(f"A code of {m} bits does not fit in one number.", remedy="Leave --packed out.")
    place = np.left_shift(np.uint64(1), np.arange(m - 1, -1, -1, dtype=np.uint64))
    return (codes.astype(np.uint64) * place).sum(1, dtype=np.uint64).astype(WIDTHS[width])
