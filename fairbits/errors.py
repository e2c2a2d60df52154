"""Errors and warnings about what you passed in. Anything else that is raised is a fault of fairbits itself.

Both hold their parts, so that each front end can word them: Python names arguments, the command line names options.
"""

import copyreg
import difflib
from collections.abc import Sequence
from typing import Any


class _Parts(Exception):
    """What is wrong, which argument and value it is about, and what to do instead."""

    def __init__(self, problem: str, *, argument: str | None = None, value: Any = None, remedy: str = ""):
        self.problem, self.argument, self.value, self.remedy = problem, argument, value, remedy
        about = "" if argument is None else f"{argument}={value!r} "
        super().__init__(f"{about}{problem} {remedy}".strip())

    def __reduce__(self) -> Any:
        """Pickle by the finished parts: constructors of subclasses take others."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(_Parts, ValueError):
    """Something you passed to fairbits cannot be used; the message says what, and what to do instead.

    >>> print(InputError("must be positive.", argument="draws", value=0, remedy="Use draws=1."))
    draws=0 must be positive. Use draws=1.
    """


class InputTypeError(InputError, TypeError):
    """Something you passed to fairbits is of a type that it cannot read."""


class MissingExtraError(InputError):
    """A package that only this needs is not installed."""

    def __init__(self, what: str, extra: str):
        super().__init__(f"{what} needs packages that are not installed.", remedy=f"pip install 'fairbits[{extra}]'.")


class InputWarning(_Parts, UserWarning):
    """Something about your data or your model that you should know."""


def did_you_mean(value: str, known: Sequence[str]) -> str:
    """Return a question with the known name that comes nearest, empty if none comes near.

    >>> did_you_mean("Yes", ["no", "yes"]), did_you_mean("sexx", ["race", "sex"]), did_you_mean("pay", ["grade"])
    ("Did you mean 'yes'?", "Did you mean 'sex'?", '')
    """
    alike = [name for name in known if name.lower() == value.lower()]
    near = alike or difflib.get_close_matches(value, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else ""
