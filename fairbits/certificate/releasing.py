"""The guarded way to release codes: one place for all codes that leave, and a ledger of who has received one."""

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.certificate.keyed_draws import DrawKey
from fairbits.certificate.ledger import Ledger, OtherPeopleError
from fairbits.certificate.released_code import (
    Release,
    check_certified_kind,
    fitted_code,
    need_certified_code,
    system_uniforms,
)
from fairbits.encoding.recognition import EITHER, LeadingZerosError, named_rows, person_table, without_zeros
from fairbits.errors import InputError
from fairbits.settings import check_value

ODD = np.uint64(0x9E3779B97F4A7C15)  # an odd number: no two repeats get the same number
AS_WRITTEN = np.uint64(0xD1B54A32D192ED03)  # of the entry of an identifier whose place one with leading zeros has
Pieces = Iterable[tuple[Any, pd.DataFrame | None]]


class AlreadyReleasedError(InputError):
    """Some of the people already have as many codes as the certificate covers."""

    def __init__(self, people: int, rows: int, certified_draws: int, how: str):
        self.people, self.rows, self.certified_draws = people, rows, certified_draws
        who = f"All {rows:,} people" if people == rows > 1 else f"{people:,} of {rows:,} people"
        codes, most = ("a code", "one") if certified_draws == 1 else ("codes", str(certified_draws))
        super().__init__(
            f"{who} already {'has' if people == 1 else 'have'} {codes} (recognised by {how}), and the certificate "
            f"covers only {most} per person.",
            remedy="Pass repeated='reuse' to get the same codes, or 'again' to get new ones, which it does not cover.",
        )


class OtherReleaseError(InputError):
    """Codes cannot be reused: they were drawn for another kind of release."""

    def __init__(self, people: int):
        self.people = people
        problem = f"{people:,} people have a code from another kind of release, which cannot be reused for this one."
        super().__init__(problem, remedy="Pass the same draws, eps and coarse as before.")


@dataclass(frozen=True)
class Released:
    """The codes of some rows, and how they came about; all of them are in the ledger."""

    codes: np.ndarray  # the bits, (n, draws * bits) uint8, or the cells of a coarse code, (n, 1)
    new: int  # people without a code before
    reused: int = 0
    again: int = 0  # people who had a code before and now have one more
    most_draws: int = 1  # of one person, this release included
    alike: int = 0  # rows identical to an earlier row, treated as other people
    exchangeable: int = 0  # reused codes of identical rows: these people may have swapped codes
    other_models: int = 0  # people who also have a code of another model in this ledger
    certified_draws: int = 1
    named: bool = True  # people are recognised by identifiers, or nothing is drawn
    complete: bool = True  # the ledger has lost nobody

    @property
    def covered(self) -> bool | None:
        """Whether the certificate covers all draws of these people; None if nobody can know.

        Without names two rows with different values may be of one person; a ledger may have lost some people.
        """
        if self.most_draws > self.certified_draws:
            return False
        return True if self.named and self.complete else None


def release(
    model: Any,
    X: Any,
    *,
    ledger: str | os.PathLike[str] | Ledger | DrawKey | None = None,
    sensitive_features: Any = None,
    person: Any = None,
    repeated: str = "refuse",
    draws: int = 1,
    eps: float = 0.0,
    coarse: Any = None,
    certified_draws: int | None = None,
    leading_zeros: str | None = None,
    accept_loss: bool = False,
) -> Released:
    """Draw a code for every person and enter it in a ledger, which refuses a second draw of the same person.

    A certificate covers a fixed number of draws per person, of whatever kind. `transform` has no memory; this has. The
    random numbers are those that OpenSSL makes keys of, whatever the model's random_state, and every code is on the
    disk before this returns. A hard code is not drawn, and the same one again is harmless: it needs no ledger. With
    one, people are noticed who also have a code of another model, or whose code has changed with their values; without
    one, nobody counts.

    Parameters
    ----------
    model : a fitted estimator with a code, also in a pipeline or a CertifiedClassifier
    X : the rows
    ledger : path of the ledger, made if there is none, or an open `Ledger`; a model needs one ledger, for all releases.
        Several models may share it: it then counts the people who have codes of several. Or a `DrawKey`, which needs
        none: the code of a `person` is the same on every machine, and the certificate holds against recipients without
        the key
    sensitive_features : of these rows, for an encoder that sees them (`encode_sensitive`)
    person : one identifier per row, or a table of several columns; 100, 100.0 and "100 " are the same. None: rows with
        the same values are the same person from one call to the next, and different people within a call
    repeated : what to do about people who have as many codes as the certificate covers: "refuse", "reuse" the last code
        of everybody who has one, or draw "again", which the certificate does not cover
    draws, eps, coarse : what is released, as in `certify` and `Release`
    certified_draws : draws per person that the certificate covers; by default those of the model's own certificate, or
        `draws`
    leading_zeros : whether identifiers such as 7 and 007 are the "same" person or "different" ones; None asks you
    accept_loss : go on although the ledger of the last release is lost; see `Ledger`

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fairbits import BinaryMIClassifier, Schedule
    >>> X, s = np.eye(2).repeat(50, 0), np.arange(100) % 2
    >>> model = BinaryMIClassifier(gamma=0, learning_rate=0.1, schedule=Schedule(min_steps=20), random_state=0)
    >>> model = model.fit(X, X[:, 0], sensitive_features=s)
    >>> with TemporaryDirectory() as folder:
    ...     first = release(model, X, ledger=f"{folder}/released.ledger")
    ...     again = release(model, X, ledger=f"{folder}/released.ledger", repeated="reuse")
    >>> first.new, again.reused, bool((first.codes == again.codes).all())
    (100, 100, True)
    """
    need_certified_code(model)
    method, rows = fitted_code(model, X, sensitive_features)
    if not hasattr(method, "code_probabilities"):
        raise InputError(f"{type(method).__name__} has no code to release.")
    certificate = getattr(model, "certificate_", None)
    check_certified_kind(method, certificate)
    what = Release(draws, eps, coarse, method.is_hard)
    if isinstance(ledger, DrawKey):
        if person is None or what.hard or eps or coarse is not None:
            problem = "A key draws plain random codes of people."
            raise InputError(problem, remedy="Pass person, and neither eps nor coarse.")
        codes = ledger.draw(method, rows, person_table(person, len(rows)), draws=draws, leading_zeros=leading_zeros)
        return Released(codes, len(codes), most_draws=draws, certified_draws=certified_draws or draws)
    if ledger is None:
        if not what.hard or person is not None:
            problem = "People are counted in a ledger." if what.hard else "A random code is released with a ledger."
            raise InputError(problem, remedy="Pass the path of one as `ledger`.")
        codes = what.draw(method.code_probabilities(rows), system_uniforms)
        return Released(codes, len(codes))
    if certified_draws is None:
        certified_draws = draws if certificate is None else certificate.release["draws"]
    names = None if person is None else person_table(person, len(rows))
    people = [] if names is None else list(names)
    with (
        nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger(ledger, people, accept_loss=accept_loss) as opened
    ):
        if opened.people != people:
            raise OtherPeopleError(opened.people)
        pieces = [(rows, names)]
        return release_pieces(method, pieces, opened, what, repeated, certified_draws, leading_zeros)


def release_pieces(
    method: Any,
    pieces: Pieces,
    ledger: Ledger,
    what: Release,
    repeated: str,
    covered: int,
    leading_zeros: str | None = None,
) -> Released:
    """Release the codes of rows that come in pieces, (rows as the method takes them, identifiers); see `release`.

    `covered` is how many draws per person the certificate covers.
    """
    check_value("repeated", repeated, one_of=("refuse", "reuse", "again"))
    check_value("leading_zeros", leading_zeros, one_of=(None, "same", "different"))
    if what.draws > covered and repeated != "again":
        raise InputError(f"is more than the certificate covers ({covered}).", argument="draws", value=what.draws)
    key, found, drawn, done = ledger.key, [], [], 0
    for rows, names in pieces:
        found.append(_numbers(ledger, rows, names, done))
        drawn.append(what.draw(method.code_probabilities(rows), system_uniforms))
        done += len(rows)
    seen = Numbers(*map(np.concatenate, zip(*found, strict=True)))
    codes, how = np.concatenate(drawn), ", ".join(ledger.people)
    kind = zlib.crc32(json.dumps(what.to_dict(method.code_size)).encode())
    with ledger.locked():
        if ledger.key != key:
            raise InputError("Another program has just started this ledger.", remedy="Please try again.")
        mask, others = ledger.masks(method.fingerprint, method.code_size)
        number = pd.Series(_places(ledger, seen, mask, leading_zeros))
        alike = int(number.duplicated().sum())
        if how and alike:
            problem = f"{alike:,} {'row has' if alike == 1 else 'rows have'} the same {how} as an earlier row."
            raise InputError(problem, remedy="Keep one row per person.")
        rows = repeats_apart(number)
        known = ledger.find(rows ^ mask)
        before = known["draws"].astype(np.int64)
        own, last = what.packed(codes), known["code"]
        same = (last[:, : own.shape[1]] == own[:, : last.shape[1]]).all(1)
        same &= (before > 0) & (known["kind"] == kind) & what.hard  # the same hard code once more is no second code
        spent = int((~same & (before + what.draws > covered)).sum())
        if repeated == "refuse" and spent:
            raise AlreadyReleasedError(spent, len(rows), covered, how or "the values that the model reads")
        kept = same | ((before > 0) & (repeated == "reuse"))
        other_kind = int((known["kind"][kept] != kind).sum())
        if other_kind:
            raise OtherReleaseError(other_kind)
        if kept.any():
            codes[kept] = what.unpacked(last[kept], method.code_size)
        identical = number.duplicated(keep=False) | (ledger.find((number.to_numpy() + ODD) ^ mask)["draws"] > 0)
        elsewhere = [ledger.find(_places(ledger, seen, other, leading_zeros) ^ other)["draws"] > 0 for other in others]
        new = ~kept
        ledger.enter((rows ^ mask)[new], own[new], draws=what.draws, zeros=seen.zeros[new], kind=kind)
    return Released(
        codes=codes,
        new=int((before == 0).sum()),
        reused=int(kept.sum()),
        again=int((~kept & (before > 0)).sum()),
        most_draws=int((before + what.draws * ~kept).max(initial=0)),
        alike=alike,
        exchangeable=int((kept & ~same & identical).sum()),
        other_models=int(np.any(elsewhere, axis=0).sum()) if elsewhere else 0,
        certified_draws=covered,
        named=bool(how) or what.hard,
        complete=ledger.complete,
    )


class Numbers(NamedTuple):
    """The numbers of people in a ledger, (n,) each."""

    bare: np.ndarray  # of identifiers without leading zeros
    written: np.ndarray  # as they are written; another number, too, for those without leading zeros
    zeros: np.ndarray  # says how many there were


def _numbers(ledger: Ledger, rows: Any, names: pd.DataFrame | None, done: int) -> Numbers:
    """Return the numbers of people by the rows' values, or by their identifiers, which must not be empty."""
    if names is None:
        values = np.asarray(rows, dtype=np.float32) + np.float32(0)  # no -0: equal rows have equal bytes
        number = ledger.number([row.tobytes() for row in values])
        return Numbers(number, number ^ AS_WRITTEN, np.zeros(len(number), np.uint16))
    texts = named_rows(names, done)
    bare = [without_zeros(name) for name in texts]
    number, zeros = ledger.number(_joined(bare)), np.zeros(len(texts), np.uint16)
    written = number ^ AS_WRITTEN
    for row in (row for row, name in enumerate(texts) if name != bare[row]):
        lost = [len(whole) - len(rest) for whole, rest in zip(texts[row], bare[row], strict=True)]
        zeros[row] = sum(min(count, 15) << 4 * (place % 4) for place, count in enumerate(lost)) % 2**16
        written[row] = ledger.number(_joined([texts[row]]))[0]
    return Numbers(number, written, zeros)


def _joined(names: list[tuple[str, ...]]) -> list[bytes]:
    return ["\x1f".join(name).encode() for name in names]


def _places(ledger: Ledger, seen: Numbers, mask: np.uint64, leading_zeros: str | None) -> np.ndarray:
    """Return the numbers under which a model's entries of these people are, or will be; ask about leading zeros.  (n,)

    An entry has its place by the identifier without leading zeros; if another identifier has that place, as written.
    """
    if not ledger.people:
        return seen.bare
    bare, written, zeros = seen
    first, padded = ledger.find(bare ^ mask), zeros > 0
    free, taken = first["draws"] == 0, (first["draws"] > 0) & (first["zeros"] != zeros)
    if not (padded | taken).any():
        return bare
    own = ledger.find(written ^ mask)["draws"] > 0
    both = free & (pd.Series(zeros).groupby(bare).transform("nunique") > 1).to_numpy()  # in these rows themselves
    asked = np.flatnonzero((taken | both) & ~own)
    if leading_zeros == "different":
        own |= taken | (both & padded)
    elif leading_zeros is None and len(asked):
        problem = f"Row {asked[-1] + 1:,} and another one, there or in the ledger, differ only in leading zeros"
        raise LeadingZerosError(problem, EITHER)
    return np.where(own, written, bare)


def repeats_apart(rows: pd.Series) -> np.ndarray:
    """Give the first, second, ... row of the same number numbers of their own, the same in every table.  (n,)

    >>> first, second, third = repeats_apart(pd.Series([7, 7, 8], dtype=np.uint64))
    >>> int(first), int(third), bool(first == second)
    (7, 8, False)
    """
    return rows.to_numpy() + rows.groupby(rows).cumcount().to_numpy(np.uint64) * ODD  # modulo 2^64
