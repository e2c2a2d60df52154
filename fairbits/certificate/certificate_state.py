"""A certificate from sums: rows that come in parts, or stay where they are."""

import copy
import os
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairbits.certificate.certificate_record import Certificate
from fairbits.certificate.certification import (
    Claims,
    CodedRows,
    Stratum,
    certificate_of,
    coded_rows,
    numbered_rows,
    read_prior,
)
from fairbits.certificate.confidence_bounds import MAX_BITS, GroupSums, group_sums
from fairbits.certificate.released_code import Release, binary_digits, certified_decision, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.encoding.columns import label as text_of
from fairbits.encoding.columns import label_places
from fairbits.errors import InputError
from fairbits.storage import file_errors, replace_file

MIN_GROUP_SIZE = 10  # people, for sums that leave
KEPT = ("model", "decisions", "bits", "hard", "seeded", "by_person")
Content = TypeVar("Content", bound=BaseModel)


class _Sums(BaseModel):
    """The sums of one column, of all rows or those of one label."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    title: str
    label: bool | int | float | str | None
    names: Annotated[list[str], Field(min_length=2)]
    people: list[Annotated[int, Field(ge=0)]]
    words: list[list[Annotated[float, Field(ge=0)]]]


class _Content(BaseModel):
    """A state as a file."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Annotated[int, Field(ge=1, le=1)] = 1
    model: str
    decisions: list[str]
    bits: Annotated[int, Field(ge=1, le=MAX_BITS)]
    hard: bool
    seeded: bool
    by_person: bool
    sums: Annotated[list[_Sums], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for own in self.sums:
            shape = {len(own.names), len(own.people), len(own.words)}
            if len(shape) > 1 or {len(words) for words in own.words} != {2**self.bits}:
                raise ValueError("its sums do not have the shape of its groups and bits")
            if any(abs(sum(words) - n) > 1e-6 * max(n, 1) for words, n in zip(own.words, own.people, strict=True)):
                raise ValueError("its sums do not add up to its people")
            if self.hard and not self.by_person and any(n % 1 for words in own.words for n in words):
                raise ValueError("its sums are of a hard code, and are no whole numbers")
        return self


def read_content(kind: type[Content], path: str | os.PathLike[str]) -> Content:
    """Read a state from a file, with all the checks of its kind."""
    with file_errors(Path(path)):
        return parsed_content(kind, Path(path).read_bytes(), path)


def parsed_content(kind: type[Content], text: str | bytes, path: str | os.PathLike[str]) -> Content:
    """Parse a state that was read from a path, with all the checks of its kind."""
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise InputError(f"{path} is not the state of a certificate, or it is damaged.") from error


class CertificateState:
    """Sums that add up to a certificate: `add` rows part by part, `merge` the states of other places, `finish`.

    The certificate is that of all rows together. A state holds, for every group, how often each word occurs: no rows,
    and the same size however many there are. `save` and `load` keep it in a small file.

    Parameters
    ----------
    source : a fitted model with a code of at most 20 bits, also at the end of a pipeline; or all possible decisions,
        such as ["no", "yes"]: `add` then takes one per row as X, and cannot know whether one rule made them all
    groups : a fitted `GroupEncoder`, for decisions; a model has its own
    labels : classes within which the disparity is bounded too; `add` then needs y
    by_person : rows of the same person count once; all rows of a person must come in the same `add`

    Examples
    --------
    >>> from fairbits import BinaryMIClassifier, Schedule
    >>> X, s = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    >>> model = BinaryMIClassifier(gamma=0, random_state=0, max_epochs=1, schedule=Schedule(min_steps=10))
    >>> model = model.fit(X[:100], X[:100, 0] > 0, sensitive_features=s[:100])
    >>> here, there = CertificateState(model), CertificateState(model)
    >>> here = here.add(X[100:200], sensitive_features=s[100:200])
    >>> there = there.add(X[200:], sensitive_features=s[200:])
    >>> here.merge(there).finish().rows
    {'sensitive_features: 0': 100, 'sensitive_features: 1': 100}
    """

    def __init__(self, source: Any, *, groups: GroupEncoder | None = None, labels: Any = None, by_person: bool = False):
        self._source, self.by_person, self.decisions = source, by_person, list[str]()
        method = fitted_code(source, None)[0]
        encoder: Any = groups
        if certified_decision(source):
            problem = "This model guarantees its class, not its code."
            raise InputError(problem, remedy="Pass its classes_ with groups=its group_encoder_, and add decisions.")
        if groups is not None and not hasattr(source, "fit"):
            self.model, self.decisions = "decisions", list(dict.fromkeys(map(text_of, source)))
            self.bits = binary_digits(np.zeros(1, int), len(self.decisions)).shape[1]
            self.hard, self.seeded = True, False
        else:
            encoder = getattr(method, "group_encoder_", None)
            if encoder is None or not hasattr(method, "code_probabilities"):
                remedy = "Pass decisions with the GroupEncoder of their groups."
                raise InputError(f"{type(method).__name__} has no code with groups to certify.", remedy=remedy)
            self.model, self.bits, self.hard = method.fingerprint, method.code_size, method.is_hard
            self.seeded = method.random_state is not None and not method.is_hard
        self._encoder = encoder
        if self.bits > MAX_BITS:
            raise InputError(f"A code of {self.bits} bits has too many words: at most {MAX_BITS} bits are possible.")
        strata = [None, *(np.unique(labels).tolist() if labels is not None else [])]
        columns = zip(encoder.titles_, encoder.names_, strict=True)
        self._found = [
            Stratum(title, label, names, GroupSums(np.zeros((len(names), 2**self.bits)), np.zeros(len(names), int)))
            for title, names in columns
            for label in strata
        ]

    def add(self, X: Any, *, sensitive_features: Any, y: Any = None, person: Any = None) -> Self:
        """Add rows that played no part in training, tuning or choosing the model; X may be their `CodedRows`."""
        if self._encoder is None:
            raise InputError(
                "You cannot add rows to a state that was read from a file.",
                remedy="Merge it with the state of a model.",
            )
        if (person is not None) != self.by_person:
            problem = (
                "by_person needs an identifier for every row."
                if self.by_person
                else "This state counts rows as people."
            )
            raise InputError(problem, remedy="Pass `person` to `add` and by_person=True to the state, or neither.")
        labels = {stratum.label for stratum in self._found} - {None}
        rows = numbered_rows(self._coded(X, sensitive_features), sensitive_features, y if labels else None, person)
        if labels and (y is None or not set(rows.labels) <= labels):
            raise InputError(f"y must be among {sorted(labels, key=str)}.", remedy="Pass the classes in `labels`.")
        columns = {title: i for i, title in enumerate(self._encoder.titles_)}
        for i, stratum in enumerate(self._found):
            theta, groups, who = rows.stratum(columns[stratum.title], stratum.label)
            sums = group_sums(theta, groups, len(stratum.names), Release(hard=self.hard), person=who)
            assert sums is not None  # at most MAX_BITS
            self._found[i] = stratum._replace(sums=stratum.sums.merge(sums))
        return self

    def _coded(self, X: Any, sensitive_features: Any) -> CodedRows:
        if isinstance(X, CodedRows):
            return X
        if not self.decisions:
            return coded_rows(self._source, X, sensitive_features)
        places = label_places(np.asarray(X), self.decisions) if np.ndim(X) == 1 else np.array([-1])
        if (places < 0).any():
            raise InputError(f"must have one of the decisions {self.decisions} per row.", argument="X", value="<rows>")
        return CodedRows(binary_digits(places, len(self.decisions)), self._encoder, hard=True, decision=True)

    def merge(self, other: "CertificateState") -> Self:
        """Add the rows of another state of the same model, or of the same kind of decisions."""
        if self.model != other.model:
            raise InputError("The states are of different models.", remedy="Merge states of the same model.")
        about = ("decisions", "bits", "hard", "by_person")
        same = all(getattr(self, name) == getattr(other, name) for name in about)
        mine, theirs = ([(f.title, f.label, f.names) for f in state._found] for state in (self, other))
        if not same or mine != theirs:
            raise InputError("The states are of different codes, groups or labels.", remedy="Use the same model.")
        self.seeded |= other.seeded
        pairs = zip(self._found, other._found, strict=True)
        self._found = [one._replace(sums=one.sums.merge(two.sums)) for one, two in pairs]
        return self

    def finish(
        self, confidence: float = 0.95, *, prior: Any = None, theorem: str = "shortest", simultaneous: bool = False
    ) -> Certificate:
        """Return the certificate of all rows so far.

        Decide beforehand how many rows there will be: adding rows until a bound passes is not covered.
        """
        names = [stratum.names for stratum in self._found if stratum.label is None]
        claim = Claims(confidence, theorem, simultaneous, None if prior is None else read_prior(prior, names))
        coded = CodedRows(np.empty((0, self.bits)), self._encoder, self.seeded, self.hard, bool(self.decisions))
        return certificate_of(self._found, claim, coded, Release(hard=self.hard), by_person=self.by_person)

    def sums(self, title: str, label: Any = None) -> GroupSums:
        """Return the sums of a sensitive column, of all rows or of those with a label."""
        return next(found.sums for found in self._found if (found.title, found.label) == (title, label))

    def without_model(self) -> Self:
        """Return the sums alone: they can be merged, sent elsewhere and finished."""
        state = copy.copy(self)
        state._source = state._encoder = None
        return state

    def save(self, path: str | os.PathLike[str], *, min_group_size: int = MIN_GROUP_SIZE) -> None:
        """Write the sums to a JSON file; refused if a group has fewer people, about whom they would say too much."""
        with file_errors(Path(path)):
            replace_file(Path(path), self.to_json(min_group_size=min_group_size))

    def to_json(self, *, min_group_size: int = MIN_GROUP_SIZE) -> str:
        """Return what `save` writes."""
        for stratum in self._found:
            for name, n in zip(stratum.names, stratum.sums.people.tolist(), strict=True):
                if 0 < n < min_group_size:
                    problem = f"Group {name!r} of {stratum.title!r} has only {n} people."
                    raise InputError(problem, remedy=f"Add rows: sums of fewer than {min_group_size} are not shared.")
        numbers = [{name: part.tolist() for name, part in f.sums._asdict().items()} for f in self._found]
        pairs = zip(self._found, numbers, strict=True)
        sums = [_Sums(title=f.title, label=f.label, names=f.names, **own) for f, own in pairs]
        known = {name: getattr(self, name) for name in KEPT}
        return _Content(**known, sums=sums).model_dump_json()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` wrote; it can be merged and finished."""
        with file_errors(Path(path)):
            return cls.from_json(Path(path).read_bytes(), path)

    @classmethod
    def from_json(cls, text: str | bytes, path: str | os.PathLike[str]) -> Self:
        """Read what `to_json` returned; errors name the path."""
        content = parsed_content(_Content, text, path)
        state = cls.__new__(cls)
        state._source = state._encoder = None
        for name in KEPT:
            setattr(state, name, getattr(content, name))
        state._found = [
            Stratum(own.title, own.label, own.names, GroupSums(np.array(own.words), np.array(own.people)))
            for own in content.sums
        ]
        return state
