"""Random codes without a ledger: the noise of a person is a keyed hash, the same on every machine, for ever.

Whoever has the key can compute the noise, and so knows more of a person than one draw. The certificate holds against
recipients without the key.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from fairbits.certificate.released_code import Release
from fairbits.encoding.recognition import EITHER, LeadingZerosError, named_rows, without_zeros
from fairbits.errors import InputError
from fairbits.storage import file_errors

BEGINNING, KEY_BYTES = "fairbits key 1 ", 32
DRAWN = 16  # numbers of 32 bits in a hash of 64 bytes


class DrawKey:
    """The secret of keyed draws: `make` one once, `read` it wherever codes are drawn, and show it to no recipient.

    Examples
    --------
    >>> key = DrawKey(bytes(32))
    >>> first = key.uniforms("model", [("Ada",), ("Bob",)], 3)
    >>> bool((first[::-1] == key.uniforms("model", [("Bob",), ("Ada",)], 3)).all())
    True
    """

    def __init__(self, secret: bytes):
        if len(secret) != KEY_BYTES:
            raise InputError(f"A key has {KEY_BYTES} bytes, not {len(secret)}.")
        self._secret = secret

    @classmethod
    def make(cls, path: str | os.PathLike[str]) -> Self:
        """Write a new key to a file that only you can read; raise InputError if there is a file."""
        secret = secrets.token_bytes(KEY_BYTES)
        with file_errors(Path(path)):
            try:
                place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                remedy = "Name another file: codes that were drawn with a key need that key."
                raise InputError(f"{path} exists and is left as it is.", remedy=remedy) from None
            with os.fdopen(place, "w") as file:
                file.write(f"{BEGINNING}{secret.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
        return cls(secret)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read the key from its file, which nobody else may read."""
        with file_errors(Path(path)):
            text, mode = Path(path).read_text(errors="replace"), Path(path).stat().st_mode
        found = re.fullmatch(BEGINNING + r"([0-9a-f]{64})\s*", text)
        if found is None:
            raise InputError(f"{path} is not a key of `fairbits key`.", remedy="Restore it from a backup.")
        if os.name == "posix" and mode & 0o077:
            raise InputError(f"Other users can read {path}.", remedy=f"Run: chmod 600 {path}")
        return cls(bytes.fromhex(found[1]))

    @property
    def name(self) -> str:
        """A text that differs between keys and gives none away."""
        return hashlib.blake2b(b"name", key=self._secret, digest_size=8).hexdigest()

    def uniforms(self, model: str, people: Sequence[tuple[str, ...]], m: int) -> np.ndarray:
        """Return m uniforms in [0, 1) for each person, those of this model.  (n, m)

        They are BLAKE2b of the model and the person, keyed by the secret: without it they look like coins.
        """
        about = hashlib.blake2b(model.encode(), digest_size=32).digest()
        blocks = [place.to_bytes(4, "big") + about for place in range(-(-m // DRAWN))]
        drawn = b"".join(
            hashlib.blake2b(block + "\x1f".join(person).encode(), key=self._secret).digest()
            for person in people
            for block in blocks
        )
        return np.frombuffer(drawn, "<u4").reshape(len(people), -1)[:, :m] * 2.0**-32

    def draw(
        self, method: Any, X: np.ndarray, people: pd.DataFrame, *, draws: int = 1, leading_zeros: str | None = None
    ) -> np.ndarray:
        """Return the code of each row of a fitted method; `people` has what names the person of each row."""
        names = named_people(people, leading_zeros)
        release = Release(draws, hard=method.is_hard)
        return release.draw(method.code_probabilities(X), lambda _, m: self.uniforms(method.fingerprint, names, m))


def named_people(people: pd.DataFrame, leading_zeros: str | None = None) -> list[tuple[str, ...]]:
    """Return what names the person of each row; ask whether 7 and 007 are the same person, if there are such names."""
    names = named_rows(people)
    bare = [without_zeros(name) for name in names]
    if leading_zeros is None and bare != names:
        row = next(row for row, name in enumerate(names) if name != bare[row])
        problem = f"Row {row + 1:,} has leading zeros in the identifier of a person, and other tables may lack them"
        raise LeadingZerosError(problem, EITHER)
    return bare if leading_zeros == "same" else names
