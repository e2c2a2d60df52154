"""The guarded way to release codes: one place for all draws that leave, and a ledger of who has received one."""

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbits.certificate.ledger import Ledger, OtherPeopleError
from fairbits.certificate.released_code import Release, check_certified_kind, fitted_code, system_uniforms
from fairbits.encoding.columns import label
from fairbits.errors import InputError

ODD = np.uint64(0x9E3779B97F4A7C15)  # an odd number: no two repeats get the same number
Pieces = Iterable[tuple[Any, pd.DataFrame | None]]


class AlreadyReleasedError(InputError):
    """Some of the people have as many codes as the certificate covers."""

    def __init__(self, people: int, rows: int, certified_draws: int, how: str):
        self.people, self.rows, self.certified_draws = people, rows, certified_draws
        who = f"All {rows:,} people" if people == rows > 1 else f"{people:,} of {rows:,} people"
        codes, most = ("a code", "one") if certified_draws == 1 else ("codes", str(certified_draws))
        super().__init__(
            f"{who} already {'has' if people == 1 else 'have'} {codes} (recognised by {how}), and the certificate "
            f"covers only {most} per person.",
            remedy="Pass repeated='reuse' to get the same codes, or 'again' to draw new ones, which it does not cover.",
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
    reused: int
    again: int  # people who had a code before and now have one more
    most_draws: int  # of one person, this release included
    alike: int  # rows identical to an earlier row, treated as other people
    exchangeable: int  # reused codes of identical rows: these people may have swapped codes
    certified_draws: int

    @property
    def covered(self) -> bool:
        """Whether the certificate covers all draws of these people."""
        return self.most_draws <= self.certified_draws


def release(
    model: Any,
    X: Any,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    sensitive_features: Any = None,
    person: Any = None,
    repeated: str = "refuse",
    draws: int = 1,
    eps: float = 0.0,
    coarse: Any = None,
    certified_draws: int | None = None,
) -> Released:
    """Draw a code for every person and enter it in a ledger, which refuses a second draw of the same person.

    A certificate covers a fixed number of draws per person, of whatever kind. `transform` has no memory; this has. The
    random numbers are the operating system's, whatever the model's random_state, and every code is on the disk before
    this returns. A hard code is not drawn: it needs no ledger and is returned as it is.

    Parameters
    ----------
    model : a fitted estimator with a code, also in a pipeline or a CertifiedClassifier
    X : the rows
    ledger : path of the ledger, made if there is none, or an open `Ledger`; a model needs one ledger, for all releases.
        A hard code needs none
    sensitive_features : of these rows, for an encoder that sees them (`encode_sensitive`)
    person : one identifier per row, or a table of several columns. None: rows with the same values are the same person
        from one call to the next, and different people within a call
    repeated : what to do about people who have as many codes as the certificate covers: "refuse", "reuse" the last code
        of everybody who has one, or draw "again", which the certificate does not cover
    draws, eps, coarse : what is released, as in `certify` and `Release`
    certified_draws : draws per person that the certificate covers; by default those of the model's own certificate, or
        `draws`

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
    method, rows = fitted_code(model, X, sensitive_features)
    if not hasattr(method, "code_probabilities"):
        raise InputError(f"{type(method).__name__} has no code to release.")
    certificate = getattr(model, "certificate_", None)
    check_certified_kind(method, certificate)
    if method.is_hard:
        codes = Release(draws, eps, coarse, hard=True).draw(method.code_probabilities(rows), system_uniforms)
        return Released(codes, len(codes), 0, 0, 1, 0, 0, 1)
    if ledger is None:
        raise InputError("A random code is released with a ledger.", remedy="Pass the path of one as `ledger`.")
    if certified_draws is None:
        certified_draws = draws if certificate is None else certificate.release["draws"]
    names, people, m = None, [], method.code_size
    if person is not None:
        table = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person)
        names = table.rename(columns={0: "person"})
        people = [str(name) for name in names.columns]
        if len(names) != len(rows):
            problem = f"There are {len(names):,} identifiers for {len(rows):,} rows."
            raise InputError(problem, remedy="Pass one per row.")
    what = Release(draws, eps, coarse)
    with nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger(ledger, m, people) as opened:
        if opened.people != people:
            raise OtherPeopleError(opened.people)
        if opened.bits != m:
            raise InputError(f"The ledger is for codes of {opened.bits} bits, and the model's have {m}.")
        return release_pieces(method, [(rows, names)], opened, what, repeated, certified_draws)


def release_pieces(method: Any, pieces: Pieces, ledger: Ledger, what: Release, repeated: str, covered: int) -> Released:
    """Release the codes of rows that come in pieces, (rows as the method takes them, identifiers); see `release`.

    `covered` is how many draws per person the certificate covers.
    """
    if repeated not in ("refuse", "reuse", "again"):
        raise InputError("must be 'refuse', 'reuse' or 'again'.", argument="repeated", value=repeated)
    if what.draws > covered and repeated != "again":
        raise InputError(f"is more than the certificate covers ({covered}).", argument="draws", value=what.draws)
    key, numbers, drawn, done = ledger.key, [], [], 0
    for rows, names in pieces:
        numbers.append(ledger.number(_recognised_by(rows, names, done)))
        drawn.append(what.draw(method.code_probabilities(rows), system_uniforms))
        done += len(numbers[-1])
    number, codes, how = pd.Series(np.concatenate(numbers)), np.concatenate(drawn), ", ".join(ledger.people)
    alike = int(number.duplicated().sum())
    if how and alike:
        problem = f"{alike:,} {'row has' if alike == 1 else 'rows have'} the same {how} as an earlier row."
        raise InputError(problem, remedy="Keep one row per person.")
    rows, kind = repeats_apart(number), zlib.crc32(json.dumps(what.to_dict(method.code_size)).encode())
    with ledger.locked():
        if ledger.key != key:
            raise InputError("Another program has just started this ledger.", remedy="Please try again.")
        known = ledger.find(rows)
        before = known["draws"].astype(np.int64)
        spent = int((before + what.draws > covered).sum())
        if repeated == "refuse" and spent:
            raise AlreadyReleasedError(spent, len(rows), covered, how or "the values that the model reads")
        kept = (before > 0) & (repeated == "reuse")
        others = int((known["kind"][kept] != kind).sum())
        if others:
            raise OtherReleaseError(others)
        if kept.any():
            codes[kept] = what.unpacked(known["code"][kept], method.code_size)
        identical = number.duplicated(keep=False) | (ledger.find(number.to_numpy() + ODD)["draws"] > 0)
        ledger.enter(rows[~kept], what.packed(codes[~kept]), draws=what.draws, kind=kind)
    return Released(
        codes=codes,
        new=int((before == 0).sum()),
        reused=int(kept.sum()),
        again=int((~kept & (before > 0)).sum()),
        most_draws=int((before + what.draws * ~kept).max(initial=0)),
        alike=alike,
        exchangeable=int((kept & identical).sum()),
        certified_draws=covered,
    )


def repeats_apart(rows: pd.Series) -> np.ndarray:
    """Give the first, second, ... row of the same number numbers of their own, the same in every table.  (n,)

    >>> first, second, third = repeats_apart(pd.Series([7, 7, 8], dtype=np.uint64))
    >>> int(first), int(third), bool(first == second)
    (7, 8, False)
    """
    return rows.to_numpy() + rows.groupby(rows).cumcount().to_numpy(np.uint64) * ODD  # modulo 2^64


def _recognised_by(rows: Any, names: pd.DataFrame | None, done: int) -> list[bytes]:
    """Return what each person is recognised by: the row's values, or the identifier, which must not be empty."""
    if names is None:
        values = np.asarray(rows, dtype=np.float32) + np.float32(0)  # no -0: equal rows have equal bytes
        return [row.tobytes() for row in values]
    texts = names.apply(lambda column: column.map(label, na_action="ignore")).astype("str").fillna("")
    empty = np.flatnonzero((texts == "").all(axis=1))
    if len(empty):
        columns = ", ".join(map(str, names.columns))
        raise InputError(f"Row {done + empty[0] + 1:,} has no value in {columns}, which identifies people.")
    return ["\x1f".join(row).encode() for row in texts.itertuples(index=False)]
