"""The one error of model files."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from fairbits.errors import InputError


class ModelFileError(InputError):
    """A model cannot be written to a file, or a file does not hold a model that can be trusted to be whole."""


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Turn what goes wrong with odd values into one sentence that begins with `what`."""
    try:
        yield
    except ModelFileError:
        raise
    except ValidationError as error:
        raise ModelFileError(f"{what}: {first_complaint(error)}.") from error
    except OSError as error:
        raise ModelFileError(f"{what}: {error.strerror or error}.") from error
    except (ValueError, TypeError, ArithmeticError, RuntimeError, MemoryError) as error:
        raise ModelFileError(f"{what}: {_short(str(error) or type(error).__name__)}.") from error


def first_complaint(error: ValidationError) -> str:
    """Return where a wrong value is and what is wrong with it; of several complaints one that is not about its type."""
    complaints = error.errors(include_url=False, include_context=False, include_input=False)
    found = min(complaints, key=lambda complaint: complaint["type"].endswith("_type"))
    place = ".".join(_short(str(part), 40) for part in found["loc"]) or "the whole"
    return f"{place}: {_short(found['msg'].removeprefix('Value error, '))}"


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text[: 2 * most].split()).rstrip(".")
    return line if len(line) <= most else line[:most] + "..."
