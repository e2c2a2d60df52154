"""One torch thread: the networks are too small for more. Audits, commands and reports train for a moment only."""

from pathlib import Path

import pytest
import torch

from fairbits.estimators import InvariantClassifier, Schedule

torch.set_num_threads(1)

# Models trained for a fraction of a second may be poor; test_concerns.py alone looks at what they warn of.
POOR = ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")
QUIET = {"estimators": POOR, "rivals": POOR, "modelfile": (*POOR, "MissingSensitiveFeaturesWarning")}
BRIEF = {"auditing", "commands", "report", "workflow"}  # what they do with a model does not depend on its quality


@pytest.fixture(scope="module", autouse=True)
def _brief_training(request):
    """Train for a moment: the methods' own schedule has 500 steps, however few the epochs."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in BRIEF:
            patch.setattr(InvariantClassifier, "own_schedule", Schedule(min_steps=60))
        yield


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.parent == Path(__file__).parent:
            for name in QUIET.get(item.path.parent.name, ()):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}"), append=False)
