"""What a text file is before it is a table: its encoding, its separator, the names of its columns."""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from fairbits.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
BINARY_STARTS = {b"PK\x03\x04": "an Excel or zip file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")  # three digits after a comma may be thousands
DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
SNIFFED_LINES = 50
HEAD_BYTES = 2**18  # looked at to find separator and names; the rest is only known to be text
BLOCK_BYTES = 2**20


class TextForm(NamedTuple):
    """How the text of a file is to be cut into columns."""

    path: Path
    encoding: str
    separator: str
    names: list[str]
    decimal: str = "."

    @property
    def notes(self) -> list[str]:
        """What was found out and is not the usual."""
        if self.separator == ",":
            return []
        decimal = ["Numbers have a decimal comma."] * (self.decimal == ",")
        return [f"Columns are separated by {SEPARATORS.get(self.separator, repr(self.separator))}.", *decimal]

    def opened(self) -> IO[str]:
        """Return the decoded text, to be read from its beginning."""
        if is_compressed(self.path):
            return gzip.open(self.path, "rt", encoding=self.encoding, newline="")
        return self.path.open(encoding=self.encoding, newline="")


def text_form(path: Path, separator: str | None, encoding: str | None) -> TextForm:
    """Read a text file once, block by block, and return its form; raise a ValueError if it is no text."""
    head, encoding = _checked_text(path, encoding)
    if separator is not None and len(separator) != 1:
        raise InputError(f"--separator {separator!r} must be a single character, such as ';'.")
    separator = separator or _separator(head, path)
    try:
        header = next(csv.reader(io.StringIO(head, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise InputError(f"The first line of {path} cannot be read: {error}; is a quote in it never closed?") from None
    return TextForm(path, encoding, separator, [name.strip() for name in header], _decimal(head, separator))


def is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


@contextmanager
def _bytes_of(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file, also a compressed one; what is wrong with the compression is a sentence."""
    if not is_compressed(path):
        with path.open("rb") as file:
            yield file
        return
    try:
        with gzip.open(path) as unpacked:
            yield unpacked
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not compressed by gzip, or is cut off.") from None


def _checked_text(path: Path, encoding: str | None) -> tuple[str, str]:
    """Decode all of a file, keeping its beginning only; return that and the encoding."""
    with _bytes_of(path) as file:
        block = file.read(HEAD_BYTES)
        encoding = _encoding(block, path, encoding)
        decoder = codecs.getincrementaldecoder(encoding)()
        wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
        head, read = _decoded(decoder, block, 0, path, encoding, wide), len(block)
        if not head.strip():
            raise InputError(f"{path} is empty.")
        whole = len(block) < HEAD_BYTES
        while block := file.read(BLOCK_BYTES):
            _decoded(decoder, block, read, path, encoding, wide)
            read += len(block)
        _decoded(decoder, b"", read, path, encoding, wide, final=True)
    return (head if whole else head[: max(head.rfind("\n"), head.rfind("\r")) + 1] or head), encoding


def _encoding(beginning: bytes, path: Path, encoding: str | None) -> str:
    if not beginning.strip():
        raise InputError(f"{path} is empty.")
    for start, kind in BINARY_STARTS.items():
        if beginning.startswith(start):
            raise InputError(f"{path} is {kind}, whatever its name says; save the table as CSV.")
    if encoding is None:
        return "utf-16" if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        "".encode(encoding)  # of text, which not all codecs are
    except LookupError:
        raise InputError(f"--encoding {encoding} is unknown; try latin-1 or utf-16.") from None
    return encoding


def _decoded(
    decoder: codecs.IncrementalDecoder,
    block: bytes,
    before: int,
    path: Path,
    encoding: str,
    wide: bool,
    *,
    final: bool = False,
) -> str:
    """Decode a block that so many bytes came before; raise a ValueError if it is not text of this encoding."""
    if not wide and b"\0" in block:
        where = before + block.index(b"\0")
        raise InputError(f"{path} holds binary data, not text (byte {where} is 0); save the table as CSV.")
    left_over = len(decoder.getstate()[0])
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as error:
        name = "UTF-8" if encoding == "utf-8-sig" else encoding
        place = f"byte {before - left_over + error.start} is 0x{error.object[error.start]:02x}"
        raise InputError(f"{path} is not {name} text ({place}); save it as UTF-8, or say --encoding latin-1.") from None
    except UnicodeError as error:
        raise InputError(f"{path} is not {encoding} text ({error}); leave --encoding out, or try another.") from None


def _widths(lines: list[str], separator: str) -> Counter[int]:
    """Count the lines of each number of columns; none, if they cannot be cut that way."""
    try:
        return Counter(len(row) for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error:  # a field without end
        return Counter()


def _decimal(head: str, separator: str) -> str:
    """Return the decimal sign: a comma only where some number has one, none has a point, and it separates nothing."""
    if separator == ",":
        return "."
    try:
        rows = list(csv.reader(io.StringIO(head, newline=""), delimiter=separator))
    except csv.Error:
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    return "," if any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(DECIMAL_POINT.fullmatch, cells)) else "."


def _separator(head: str, path: Path) -> str:
    """Return the separator that cuts the first lines into the most columns, the same number in each.

    A space is one only if nothing else is, and if it cuts the first line like the others: it stands within values, too.
    """
    lines = head.splitlines()[:SNIFFED_LINES]
    columns = {}
    for separator in SEPARATORS:
        counts = _widths(lines, separator)
        if not counts:
            continue
        width, agreeing = counts.most_common(1)[0]
        if agreeing >= 0.8 * counts.total() and max(_widths(lines[:1], separator), default=0) > 1:  # the names, too
            columns[separator] = width
    best = max(
        columns, key=lambda separator: (columns[separator] > 1, separator != " ", columns[separator]), default=","
    )
    if columns.get(best, 1) < 2:
        raise InputError(
            f"{path} has one column only, lines of many different lengths, or a quote that is never closed. Its first "
            f"line is {lines[0][:60]!r}; say --separator if it is none of comma, semicolon, tab, bar and "
            "space."
        )
    return best
