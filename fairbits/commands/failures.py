"""What a user sees when something goes wrong, and the exit codes."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

MEND, USAGE, NOT_CERTIFIED, CONTRADICTED, UNEXPECTED, STOPPED, PIPE = 1, 2, 3, 4, 70, 130, 141
SAID = ("BinnedSensitiveFeaturesWarning",)  # in a note of the task
EPILOG = (
    "Exit codes: 0 fine; 1 an input to mend; 2 wrong usage; 3 not certified; 4 an earlier certificate is contradicted; "
    "70 an error of fairbits itself; 130 stopped."
)


class Commands(TyperGroup):
    """The commands; Ctrl-C ends each with a line, a reader who went away with none."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            print("\nfairbits: stopped.", file=sys.stderr)
            raise SystemExit(STOPPED) from None
        except BrokenPipeError:
            _forget_output()
            raise SystemExit(PIPE) from None


@contextmanager
def warnings_in_words(*, debug: bool) -> Iterator[None]:
    """Show warnings of fairbits as a sentence, each once, and none of others; with debug as Python does."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        from fairbits.commands.plain_words import plain_words

        text = plain_words(str(message))
        if category.__module__.startswith("fairbits") and category.__name__ not in SAID and text not in said:
            print(f"Mind: {text}", file=sys.stderr)
        said.add(text)

    with warnings.catch_warnings():
        if not debug:
            warnings.showwarning = show
        yield


def exit_code_of(error: Exception, *, debug: bool) -> int:
    """Say what went wrong, in a paragraph or (debug) with the traceback, and return the exit code."""
    if debug:
        traceback.print_exception(error)
        return MEND if isinstance(error, (ValueError, OSError)) else UNEXPECTED
    if isinstance(error, (ValueError, OSError)):
        from fairbits.commands.plain_words import plain_words

        print(f"fairbits: {plain_words(str(error))}", file=sys.stderr)
        return MEND
    about = " ".join(str(error).split())[:300] or "no message"
    print(
        f"fairbits met an error it did not expect: {type(error).__name__}: {about}. That is a fault of fairbits, not "
        "yours; run again with --debug and report what it prints.",
        file=sys.stderr,
    )
    return UNEXPECTED


def _forget_output() -> None:
    """Send what is still to be written to nowhere: the reader of the pipe has gone, and Python would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
