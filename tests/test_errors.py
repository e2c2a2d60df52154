"""Errors hold their parts, also after a trip to another process."""

import pickle

import pytest

from fairbits.encoding import SmallGroupError
from fairbits.errors import InputError, InputTypeError, InputWarning, MissingExtraError

ERRORS = [
    InputError("is odd.", argument="x", value=3, remedy="Pass 2."),
    InputTypeError("is text."),
    InputWarning("Look out."),
    MissingExtraError("A search", "experiments"),
    SmallGroupError("M", "sex", 3, 10, "Merge it."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_survive_a_pickle(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_the_message_is_made_of_its_parts():
    assert str(ERRORS[0]) == "x=3 is odd. Pass 2."
    assert isinstance(ERRORS[1], TypeError)
    assert isinstance(ERRORS[1], ValueError)
