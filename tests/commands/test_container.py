"""The steps of the container file, done in a fresh virtual environment: the service starts, is healthy and answers."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from people import population

ROOT = Path(__file__).parent.parent.parent
READ = ["grade", "height", "job", "day"]


def steps():
    """Return the steps of the container file in order: a name and what follows, of several lines as one."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line and not line.startswith("#")]


def test_it_has_a_health_check_and_runs_as_nobody_in_particular():
    found = dict(steps())
    assert found["USER"] != "root"
    assert {"FROM", "HEALTHCHECK", "CMD"} <= found.keys()


def copied(what, place):
    """Copy what a step names, files into a folder or a folder to a name, from the checkout."""
    *sources, to = shlex.split(what)
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place / to)
        else:
            shutil.copy(ROOT / source, place / to)


@pytest.mark.slow
def test_its_steps_make_a_healthy_service(hard, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    path, place = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", tmp_path / "image"
    place.mkdir()
    inside = {"cwd": place, "env": {**os.environ, "PATH": path, "PYTHONPATH": ""}}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    check = process = None
    for name, what in steps():
        here = what.replace("8000", port).replace("/model", str(hard / "m"))
        if name == "COPY":
            copied(what, place)
        elif name == "RUN":
            subprocess.run(here, shell=True, check=True, **inside)
        elif name == "HEALTHCHECK":
            check = here.partition("CMD ")[2]
        elif name == "CMD":
            process = subprocess.Popen(json.loads(here), **inside)
    try:
        for _ in range(300):
            assert process.poll() is None
            if subprocess.run(check, shell=True, stderr=subprocess.DEVNULL, **inside).returncode == 0:
                break
            time.sleep(0.2)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert json.load(answer)["status"] == "ok"
        body = json.dumps({"rows": json.loads(population(5, 1)[READ].to_json(orient="records"))}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/codes", body) as answer:
            assert len(json.load(answer)["codes"]) == 5
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
