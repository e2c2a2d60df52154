"""The words of a record: bounds are never understated, and the texts use the words of the glossary."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbits.report.wording import TEXTS, adversaries, at_least, at_most

RETIRED = r"(?i)\b(surely|tells?|told|forgets?|hand(ed|s)? (on|out)|anew|mend|mind:|whoever|gaps?)\b"


@given(st.floats(0, 1), st.integers(2, 6))
def test_bounds_are_rounded_to_the_safe_side(bound, digits):
    low, high = float(at_least(bound, digits)), float(at_most(bound, digits))
    assert low - 1e-8 <= bound <= high + 1e-8
    assert high - low < 1.5 * 10**-digits


def texts(part):
    if isinstance(part, str):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else ():
        yield from texts(inner)


def test_the_texts_are_sentences_in_the_words_of_the_glossary():
    found = list(texts(TEXTS))
    assert len(found) > 50
    assert not [text for text in found if re.search(RETIRED, text) or "  " in text or "\n" in text]
    assert {"disparity", "leakage", "code", "draw", "release", "limit", "certificate"} <= set(TEXTS["words"]["facts"])


@pytest.mark.parametrize(
    ("reached", "at_most", "words"),
    [
        (0.5, 0.5431, "none of ours is better than chance, a balanced accuracy of 0.500; no attack can exceed 0.544"),
        (0.5329, 0.6, "our best (boosted trees) guesses the group with a balanced accuracy of at least 0.532"),
        (0.5, None, "none of ours is better than chance, a balanced accuracy of 0.500 (95% confidence)."),
    ],
)
def test_attacks_are_said_with_the_bound(reached, at_most, words):
    found = {"column": "sex", "reached": reached, "by": "boosting", "at_most": at_most, "chance": 0.5}
    (line,) = adversaries({"audit": {"confidence": 0.95, "adversaries": [found]}})
    assert line.startswith("Attacks on sex: ")
    assert words in line
