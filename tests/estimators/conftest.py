"""Models trained for a fraction of a second may be poor: their concerns are the business of test_concerns.py alone."""

from pathlib import Path

import pytest

CONCERNS = ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for name in CONCERNS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}"), append=False)
