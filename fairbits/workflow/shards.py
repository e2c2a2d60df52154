"""One of N runs of the same command, each with every N-th part: for job arrays that know nothing of each other."""

import re
from typing import NamedTuple, Self

from fairbits.errors import InputError


class Shard(NamedTuple):
    """Number `place` of `runs`, from 0.

    >>> [number for number in range(7) if Shard.of("1/3").has(number)]
    [1, 4]
    """

    place: int
    runs: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a text such as 0/3."""
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        place, runs = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 0 <= place < runs:
            problem = "must be a place and a count, from 0/3 to 2/3 for three runs."
            raise InputError(problem, argument="shard", value=text)
        return cls(place, runs)

    def has(self, number: int) -> bool:
        """Return whether a part is of this run."""
        return number % self.runs == self.place
