"""The battery of the estimators' tests serves here, too."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "estimators"))
QUIET = ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning", "MissingSensitiveFeaturesWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for name in QUIET:  # models trained for a fraction of a second may be poor
                item.add_marker(pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}"), append=False)
