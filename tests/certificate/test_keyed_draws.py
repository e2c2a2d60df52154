"""Keyed draws: the same code on every machine, coins to all without the key, and an open book to those with it."""

import hashlib
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2, kstest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from fairbits import InputError, certify, release
from fairbits.certificate.keyed_draws import BEGINNING, DrawKey, named_people

KEY = DrawKey(hashlib.sha256(b"a test").digest())
PEOPLE = [(f"person {i}",) for i in range(20_000)]


def test_a_person_has_the_same_numbers_in_any_order_and_process():
    found = KEY.uniforms("a", PEOPLE[:50], 40)
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(KEY.uniforms("a", [PEOPLE[i] for i in order], 40), found[order])
    np.testing.assert_array_equal(KEY.uniforms("a", PEOPLE[:50], 3), found[:, :3])
    code = "import hashlib; from fairbits.certificate.keyed_draws import DrawKey\n"
    code += "key = DrawKey(hashlib.sha256(b'a test').digest())\n"
    code += "print(repr(key.uniforms('a', [('person 7',)], 40).tolist()[0]))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == repr(found[7].tolist())


def test_the_numbers_are_the_keyed_hash_that_the_documentation_says():
    about = (0).to_bytes(4, "big") + hashlib.blake2b(b"a", digest_size=32).digest()
    secret = hashlib.sha256(b"a test").digest()
    expected = np.frombuffer(hashlib.blake2b(about + b"Ada\x1f1815", key=secret).digest(), "<u4") * 2.0**-32
    np.testing.assert_array_equal(KEY.uniforms("a", [("Ada", "1815")], 16)[0], expected)


def test_numbers_are_uniform_and_independent():
    numbers = KEY.uniforms("a", PEOPLE, 20)
    assert 0 <= numbers.min() <= numbers.max() < 1
    assert all(kstest(column, "uniform").pvalue > 1e-4 for column in numbers.T)
    bits = (numbers < 0.5).astype(int)
    words = np.bincount(bits[:, :8] @ (1 << np.arange(8)), minlength=256)
    expected = len(PEOPLE) / 256
    assert chi2.sf(((words - expected) ** 2 / expected).sum(), 255) > 1e-4
    apart = np.corrcoef(numbers.T)[~np.eye(20, dtype=bool)]
    assert np.abs(apart).max() < 5 / np.sqrt(len(PEOPLE))
    neighbours = np.corrcoef(numbers[:-1, 0], numbers[1:, 0])[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(len(PEOPLE))


def test_models_keys_and_people_have_numbers_of_their_own():
    found = KEY.uniforms("a", PEOPLE[:2_000], 4)
    others = [KEY.uniforms("b", PEOPLE[:2_000], 4), DrawKey(bytes(32)).uniforms("a", PEOPLE[:2_000], 4)]
    for other in others:
        agree = ((found < 0.5) == (other < 0.5)).sum()
        assert 1e-4 < binom.cdf(agree, found.size, 0.5) < 1 - 1e-4
    assert (KEY.uniforms("a", [("x", "y")], 1) != KEY.uniforms("a", [("xy",)], 1)).all()


def weak_code(n, m=16, gap=0.05):
    """Return people whose bits each differ by little between two groups, and a method that draws them."""
    s = np.arange(n) % 2
    theta = np.tile(0.5 + gap * (2 * s - 1)[:, None], (1, m))
    return s, SimpleNamespace(code_probabilities=lambda X: X, is_hard=False, fingerprint="weak"), theta


def test_the_certificate_holds_for_all_without_the_key_and_for_nobody_with_it():
    """With the key a recipient knows the coin of every bit: one that lies between the groups gives the group away."""
    s, method, theta = weak_code(20_000)
    people = pd.DataFrame({"id": np.arange(len(s))})
    codes = KEY.draw(method, theta, people)
    half = len(s) // 2
    bound = certify(theta[half:], sensitive_features=s[half:]).balanced_accuracy
    guess = LogisticRegression().fit(codes[:half], s[:half]).predict(codes[half:])
    assert 0.6 < balanced_accuracy_score(s[half:], guess) <= bound
    coins = KEY.uniforms("weak", named_people(people), theta.shape[1])
    between = (coins >= 0.45) & (coins < 0.55)
    seen = np.where(between, 2.0 * codes - 1, 0).sum(1)
    assert balanced_accuracy_score(s, seen > 0) > bound + 0.1
    other = DrawKey(bytes(32)).uniforms("weak", named_people(people), theta.shape[1])
    blind = np.where((other >= 0.45) & (other < 0.55), 2.0 * codes - 1, 0).sum(1)
    assert balanced_accuracy_score(s, blind > 0) <= bound


def test_bits_follow_their_chances():
    chances = np.tile([0.0, 0.2, 0.9, 1.0], (20_000, 1))
    method = SimpleNamespace(code_probabilities=lambda X: X, is_hard=False, fingerprint="f")
    codes = KEY.draw(method, chances, pd.DataFrame({"id": range(20_000)}))
    np.testing.assert_allclose(codes.mean(0), chances[0], atol=0.015)
    assert codes[:, 0].sum() == 0
    assert codes[:, 3].all()


def test_a_key_is_a_file_that_nobody_else_may_read(tmp_path):
    made = DrawKey.make(tmp_path / "k")
    assert stat.S_IMODE(os.stat(tmp_path / "k").st_mode) == 0o600
    assert DrawKey.read(tmp_path / "k").name == made.name
    assert (tmp_path / "k").read_text().startswith(BEGINNING)
    assert made.name not in (tmp_path / "k").read_text()
    with pytest.raises(InputError, match="exists and is left as it is"):
        DrawKey.make(tmp_path / "k")
    (tmp_path / "k").chmod(0o644)
    with pytest.raises(InputError, match=r"Other users can read .* chmod 600"):
        DrawKey.read(tmp_path / "k")
    (tmp_path / "n").write_text("no key")
    with pytest.raises(InputError, match="not a key"):
        DrawKey.read(tmp_path / "n")
    with pytest.raises(InputError, match="32 bytes, not 3"):
        DrawKey(b"abc")


def test_who_is_who_is_asked():
    people = pd.DataFrame({"id": ["7", "007"]})
    with pytest.raises(InputError, match="Row 2 has leading zeros"):
        named_people(people)
    assert named_people(people, "same") == [("7",), ("7",)]
    assert named_people(people, "different") == [("7",), ("007",)]
    with pytest.raises(InputError, match="Row 2 has no value in id"):
        named_people(pd.DataFrame({"id": ["1", None]}))


def test_release_takes_a_key_in_place_of_a_ledger():
    _, method, theta = weak_code(100)
    method.random_state, method.code_size = None, theta.shape[1]
    released = release(method, theta, ledger=KEY, person=np.arange(100))
    np.testing.assert_array_equal(released.codes, KEY.draw(method, theta, pd.DataFrame({"person": np.arange(100)})))
    assert released.covered
    with pytest.raises(InputError, match="Pass person"):
        release(method, theta, ledger=KEY)
