"""What you see when something goes wrong: a sentence and an exit code."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from fairbits.errors import InputError, InputWarning
from fairbits.workflow.option_words import worded

BAD_INPUT, NOT_CERTIFIED, CONTRADICTED, BUG, INTERRUPTED, BROKEN_PIPE = 1, 3, 4, 70, 130, 141  # 2 is typer's
EPILOG = (
    "Exit codes: 0 success, 1 bad input, 2 wrong usage, 3 not certified, 4 certificate contradicted, 70 bug in "
    "fairbits, 130 interrupted."
)
IN_NOTES = ("BinnedSensitiveFeaturesWarning",)  # the commands print these as notes


class Commands(TyperGroup):
    """The commands: Ctrl-C ends each with a line, a closed pipe with none."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            print("\nfairbits: interrupted.", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:  # nobody reads the rest, and Python would complain about it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None


@contextmanager
def warnings_in_words(*, debug: bool) -> Iterator[None]:
    """Print each warning of fairbits once, as a sentence, and none of other packages; with debug as Python does."""
    printed: set[str] = set()

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if isinstance(message, InputWarning) and category.__name__ not in IN_NOTES:
            text = worded(message)
            if text not in printed:
                print(f"Warning: {text}", file=sys.stderr)
            printed.add(text)

    with warnings.catch_warnings():
        if not debug:
            warnings.showwarning = show
        yield


def exit_code_of(error: Exception, *, debug: bool) -> int:
    """Print what went wrong, as a sentence or (debug) with the traceback, and return the exit code."""
    if debug:
        traceback.print_exception(error)
    elif isinstance(error, InputError):
        print(f"fairbits: {worded(error)}", file=sys.stderr)
    else:
        about = " ".join(str(error).split())[:300] or "no message"
        print(
            f"fairbits: unexpected {type(error).__name__}: {about}. This is a bug in fairbits. Please run the command "
            "again with --debug and report what it prints.",
            file=sys.stderr,
        )
    return BAD_INPUT if isinstance(error, InputError) else BUG
