"""Digits on a coloured ground whose colour goes with the digit, as strongly as you like (Bahng et al. 2020)."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import entropy

from fairbits.datasets.dataset import ABOUT, Folder, Seed, about
from fairbits.datasets.mnist import fetch_mnist
from fairbits.settings import check_value

COLOURS = np.frombuffer(  # of the classes 0 to 9; the two with e1 are as published
    bytes.fromhex("ff0000 00ff00 0000ff e1e100 e100e1 00ffff ff8000 ff0080 8000ff 808080"), np.uint8
).reshape(10, 3)
DIGITS_TRAIN = 1197  # the first two thirds of the file


@dataclass(frozen=True, eq=False, repr=False)
class BiasedImages:
    """Hold coloured images with their labels, their colours and what to know about them.

    Attributes
    ----------
    X : (n, 3, height, width) of uint8, white (255, 255, 255) where the digit is, the colour elsewhere
    y : (n,) digits 0..9
    s : (n,) colours 0..9, each named by the class it belongs to
    rho : share of every class that has its own colour
    caveats : sentences to read before you use the data or quote a result on it
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    rho: float
    description: str
    caveats: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        shape, bits = " x ".join(map(str, self.X.shape[1:])), label_entropy_given_colour(self.y, self.s)
        return f"BiasedImages({self.name}: {len(self)} images, {shape}; rho {self.rho:g}, H(Y|S) {bits:.3f} bits)"


def biased_mnist(
    rho: float, split: str = "train", *, data_home: Folder = None, random_state: Seed = 0, n: int | None = None
) -> BiasedImages:
    """Colour MNIST's background so that it gives the digit away in a share rho of the images of each class.

    Exactly int(n_k * rho) of the n_k images of class k have colour k. The others are split over the nine other
    colours, in counts that differ by at most one. (The published code fills one colour after the other with
    ceil(rest / 9) images, so that its last colours have fewer, or none.) rho=0.1 is the unbiased set: every colour
    has a tenth of each class, rounded up or down.

    Parameters
    ----------
    rho : 0 to 1; the paper trains with 0.990 and 0.995 and tests with 0.1
    split : "train" or "test", MNIST's own 60,000 and 10,000 images
    data_home : where MNIST is or will be kept, see `fetch_mnist`
    random_state : seed that chooses which images have which colour and the order of the rows. Data sets of one seed
        that differ in rho hold the same images in the same order
    n : take this many images, drawn without regard to the class, instead of all
    """
    check_value("rho", rho, at_least=0, at_most=1)
    check_value("split", split, one_of=("train", "test"))
    data = fetch_mnist(data_home)
    rows = getattr(data, f"{split}_images"), getattr(data, f"{split}_labels")
    return _biased("biased_mnist", rows, rho, split, random_state, n)


def biased_digits(rho: float, split: str = "train", *, random_state: Seed = 0, n: int | None = None) -> BiasedImages:
    """Colour scikit-learn's 8 by 8 digits as `biased_mnist` does, with its parameters; nothing is downloaded.

    The first 1197 images of the file are "train", the last 600 "test", whatever the seed, so that the two never share
    an image. Neighbours in the file resemble each other: a random split would look easier than digits of other people
    are.

    >>> biased_digits(0.9)
    BiasedImages(biased_digits: 1197 images, 3 x 8 x 8; rho 0.9, H(Y|S) 0.795 bits)
    >>> biased_digits(0.1, "test")
    BiasedImages(biased_digits: 600 images, 3 x 8 x 8; rho 0.1, H(Y|S) 3.319 bits)
    """
    from sklearn.datasets import load_digits  # slow to import

    check_value("rho", rho, at_least=0, at_most=1)
    check_value("split", split, one_of=("train", "test"))
    digits = load_digits()
    part = slice(DIGITS_TRAIN) if split == "train" else slice(DIGITS_TRAIN, None)
    return _biased("biased_digits", (digits.images[part], digits.target[part]), rho, split, random_state, n)


def label_entropy_given_colour(y: np.ndarray, s: np.ndarray) -> float:
    """Return H(Y|S) of these rows in bits."""
    joint = np.histogram2d(s, y, bins=(np.arange(11), np.arange(11)))[0]  # (colours, digits)
    return float(entropy(joint.ravel(), base=2) - entropy(joint.sum(axis=1), base=2))


def _biased(name: str, source: tuple, rho: float, split: str, random_state: Seed, n: int | None) -> BiasedImages:
    """Colour images, given with their labels."""
    images, labels = source
    if n is not None:
        check_value("n", n, at_least=1, at_most=len(images), whole=True)
    rng = np.random.default_rng(random_state)
    rows = rng.permutation(len(images))[:n]
    y = labels[rows].astype(np.int64)
    s = _colours_of(y, rho, rng)
    absent = 100 - len(np.unique(10 * y + s))
    facts = {"split": split, "rho": rho, "rows": len(y), "own": (y == s).sum(), "absent": absent}
    facts |= {"source": ABOUT["biased"]["sources"][name], "entropy": label_entropy_given_colour(y, s)}
    X = np.where(images[rows][:, None] == 0, COLOURS[s][:, :, None, None], np.uint8(255))
    return BiasedImages(name, X, y, s, float(rho), *about("biased", name, *(["absent"] if absent else []), **facts))


def _colours_of(y: np.ndarray, rho: float, rng: np.random.Generator) -> np.ndarray:
    """Return each row's colour: of class k, int(n * rho) rows take k, and the others all other colours in turn."""
    s = np.empty_like(y)
    for k in range(10):
        members = rng.permutation(np.flatnonzero(y == k))
        others = rng.permutation(np.delete(np.arange(10), k))
        own = int(len(members) * rho)
        s[members[:own]] = k
        s[members[own:]] = np.resize(others, len(members) - own)
    return s
