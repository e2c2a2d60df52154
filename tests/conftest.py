"""One torch thread: the networks of the tests are too small for more."""

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)

# Models trained for a fraction of a second may be poor; test_concerns.py alone looks at what they warn of.
POOR = ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")
QUIET = {"estimators": POOR, "rivals": POOR, "modelfile": (*POOR, "MissingSensitiveFeaturesWarning")}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.parent == Path(__file__).parent:
            for name in QUIET.get(item.path.parent.name, ()):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}"), append=False)
