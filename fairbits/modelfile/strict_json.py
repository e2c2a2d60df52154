"""JSON as a model file holds it: of limited size and depth, every key once, no NaN."""

import json
from typing import Any

from fairbits.errors import InputError
from fairbits.modelfile.error import ModelFileError

MAX_JSON = 2**25  # bytes
MAX_VALUES = 2**20  # a value costs some 100 bytes of memory, whatever it takes in the file


def write_json(value: Any) -> bytes:
    """Return a value as text for files; numbers keep every digit."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1).encode() + b"\n"


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the object that the file `name` holds.

    >>> read_json(b'{"a": [1, 2.5]}', "model.json")
    {'a': [1, 2.5]}
    """
    if len(data) > MAX_JSON or sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ModelFileError(f"{name} holds more than a model file may, {MAX_VALUES} values in {MAX_JSON} bytes.")
    try:
        value = json.loads(data.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply for a model file.") from None
    except ValueError as error:
        raise ModelFileError(f"{name} is not valid JSON: {str(error)[:200]}.") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{name} holds a {type(value).__name__} where an object is expected.")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("a key occurs twice")
    return found


def _no_constant(text: str) -> None:
    raise InputError(f"{text} is not a number of JSON")
