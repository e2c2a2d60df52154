"""One thread: the problems are too small for more. Audits, commands and reports train for a moment only.

The process that hands tests to workers loads this file, too, so whatever is heavy is imported where it is used.
"""

import functools
import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also of the processes that tests start

# Models trained for a fraction of a second may be poor; test_concerns.py alone looks at what they warn of.
POOR = ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")
QUIET = {"estimators": POOR, "rivals": POOR, "modelfile": (*POOR, "MissingSensitiveFeaturesWarning")}
BRIEF = {"auditing", "commands", "report", "workflow"}  # what they do with a model does not depend on its quality


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)  # of boosted trees and of linear algebra


@pytest.fixture(scope="module", autouse=True)
def _brief_training(request):
    """Train for a moment; probes are of few trees, too, outside of their own tests."""
    from battery import train_briefly
    from sklearn.ensemble import HistGradientBoostingClassifier

    from fairbits.auditing import probes

    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in BRIEF:
            train_briefly(patch)
            if request.path.name != "test_probes.py":
                few = functools.partial(HistGradientBoostingClassifier, max_iter=10)
                patch.setattr(probes, "HistGradientBoostingClassifier", few)
        yield


@pytest.fixture(scope="session")
def operators():
    """Let torch read its table of operators once: it would at every export, and that is most of the time."""
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason="pip install 'fairbits[export]'")
    registry = pytest.importorskip("torch.onnx._internal.exporter._registration").ONNXRegistry
    cached = functools.cache(registry.from_torchlib)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "from_torchlib", staticmethod(cached))
        yield cached


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.parent == Path(__file__).parent:
            for name in QUIET.get(item.path.parent.name, ()):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}"), append=False)
