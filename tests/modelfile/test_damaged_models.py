"""Thousands of damaged model files: an error each time, no crash, no code run, bounded memory and time.

An accident leaves the digests alone and must always be refused. A forgery gets digests that are right; where it is not
refused it has to be another model that works: one changed weight is nothing that a reader can know of. The count of
damaged files is that of the refused ones, and no accident may be missing among them.
"""

import re
import shutil
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from battery import problem, quick
from damage import damaged
from model_zoo import certified, certified_fair_code, images, pipeline, posterior_pipeline

import fairbits
from fairbits import LFRClassifier, ModelFileError, VanillaClassifier, VFAEClassifier

WATCHED = ("open", "exec", "compile", "import", "pickle.find_class", "subprocess.Popen", "os.system", "os.exec")
WATCHED += ("os.posix_spawn", "os.fork", "ctypes.dlopen", "socket.connect", "os.remove", "os.rename", "os.mkdir")
RAN: list[tuple] | None = None  # what the hook below has seen; None: it does not look


def _watch(event, args):
    literal = event == "compile" and args[1] == "<unknown>"  # numpy reads the header of an array: a tree, not code
    if RAN is not None and event in WATCHED and not literal:
        RAN.append((event, args))


sys.addaudithook(_watch)  # cannot be taken back: it sleeps unless RAN is a list


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Files of models of every kind, with rows to predict."""
    X, y, s = problem(200)
    both = np.column_stack([s, np.arange(200) % 2])
    models = [
        pipeline()[:2],
        certified()[:2],
        certified_fair_code()[:2],
        posterior_pipeline("each", n_classes=3)[:2],
        images(VanillaClassifier),
        (quick(VFAEClassifier, groups="each", hidden_sizes=(4,)).fit(X, y, sensitive_features=both), X),
        (quick(LFRClassifier).fit(X, np.array(["a", "b"])[y], sensitive_features=s), X),
    ]
    folder = tmp_path_factory.mktemp("zoo")
    for i, (model, _) in enumerate(models):
        fairbits.save(model, folder / str(i))
    return [
        ({file.name: file.read_bytes() for file in (folder / str(i)).iterdir()}, rows[:20])
        for i, (_, rows) in enumerate(models)
    ]


def write(place: Path, files) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)


def loaded(place: Path):
    """Load while nobody may run code or open a file elsewhere; return the model, or the error."""
    global RAN
    RAN = []
    try:
        found = fairbits.load(place)
    except ModelFileError as error:
        found = error
    seen, RAN = RAN, None
    opened = [args[0] for event, args in seen if event == "open" and not isinstance(args[0], int)]
    assert not [file for file in opened if Path(file).parent != place], opened
    assert not [event for event, _ in seen if event != "open"], seen
    return found


def works(model, rows) -> bool:
    """Say whether a model predicts, or says in a ValueError why these rows are not for it."""
    if not hasattr(model, "predict_proba"):
        return hasattr(model, "transform")
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return model.predict_proba(rows).shape == (len(rows), len(model.classes_))
    except ValueError:
        return True


def peak_memory() -> int:
    """Largest resident memory in bytes since it was last forgotten; forget it."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def fuzz(zoo, place, n_damaged, seed):
    """Load damaged files until so many were refused; return counts, the longest time and the memory taken."""
    rng = np.random.default_rng(seed)
    for files, rows in zoo:  # what is imported when first needed is not the damage's doing
        write(place, files)
        assert works(fairbits.load(place), rows)
    counts: Counter = Counter()
    peak_memory()
    before, longest = peak_memory(), 0.0
    while counts["refused accident"] + counts["refused forgery"] < n_damaged:
        files, rows = zoo[rng.integers(len(zoo))]
        changed, forged = damaged(rng, files)
        write(place, changed)
        start = time.perf_counter()
        found = loaded(place)
        longest = max(longest, time.perf_counter() - start)
        refused = isinstance(found, ModelFileError)
        counts[f"{'refused' if refused else 'loaded'} {'forgery' if forged else 'accident'}"] += 1
        assert not refused or re.fullmatch(r"[^\n]{10,900}\.", str(found)), str(found)
        if refused and found.__cause__ is not None:
            counts[f"because of a {type(found.__cause__).__name__}"] += 1
        assert refused or forged, "an accident was not noticed"
        assert refused or works(found, rows)
    return counts, longest, peak_memory() - before


def check(zoo, place, n_damaged, seed):
    counts, longest, memory = fuzz(zoo, place, n_damaged, seed)
    print(dict(counts), f"longest {longest:.2f} s, memory {memory / 2**20:.0f} MB")
    assert counts["refused accident"] > n_damaged / 4
    assert counts["refused forgery"] > n_damaged / 4
    assert longest < 10
    assert memory < 400 * 2**20


def test_100_damaged_models(zoo, tmp_path):
    check(zoo, tmp_path / "model", 100, seed=0)


@pytest.mark.slow
def test_5000_damaged_models(zoo, tmp_path):
    check(zoo, tmp_path / "model", 5_000, seed=1)
