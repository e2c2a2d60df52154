"""Imports point down: a test walks them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairbits

PACKAGE = Path(fairbits.__file__).parent
LAYERS = [
    {"information", "kernels", "metrics", "datasets", "encoding", "records"},
    {"certificate", "nn"},
    {"training"},
    {"estimators"},
    {"modelfile", "export"},
    {"auditing", "path", "plane", "certified", "compare", "tuning"},
    {"experiments"},
    {"report"},
    {"workflow"},
    {"cli"},
]
FILES = sorted(PACKAGE.rglob("*.py"))


def part(module: str) -> str | None:
    """Return the part of the package a module belongs to: fairbits.nn.layers -> nn."""
    names = module.split(".")
    return names[1] if names[0] == "fairbits" and len(names) > 1 else None


def imported_parts(file: Path) -> set[str]:
    """Return the parts of the package that a file imports absolutely, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {part(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "fairbits" else []
            found |= {part(name) for name in [node.module or "", *names]}
    return found - {None}


def layer(name: str) -> int:
    return next(i for i, parts in enumerate(LAYERS) if name in parts)


@pytest.mark.parametrize("file", [f for f in FILES if f.parent != PACKAGE or f.name != "__init__.py"], ids=str)
def test_imports_point_down(file):
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for other in imported_parts(file) - {own}:
        assert layer(other) < layer(own), f"{own} imports {other}"


def test_every_file_of_the_package_has_a_true_name():
    vague = {"utils", "util", "misc", "common", "helpers", "helper"}
    assert not [f for f in FILES if f.stem in vague or f.parent.name in vague]


def modules_after(code: str) -> set[str]:
    """Return the modules a fresh interpreter has loaded after running code."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_importing_fairbits_is_cheap():
    heavy = {"torch", "sklearn", "optuna", "matplotlib", "altair", "dask", "wandb"}
    assert not heavy & modules_after("import fairbits")
    assert not heavy & modules_after("import fairbits.cli")


def test_using_an_estimator_loads_no_optional_package():
    optional = {"optuna", "matplotlib", "altair", "dask", "distributed", "wandb", "jinja2", "fairlearn", "aif360"}
    optional |= {"onnx", "onnxscript", "onnxruntime"}
    assert not optional & modules_after("from fairbits import *; from fairbits.compare import *")


def test_public_names_are_where_they_are_said_to_be():
    assert set(fairbits.__all__) <= set(dir(fairbits))
    for name in fairbits.__all__:
        assert getattr(fairbits, name).__name__ == name
    with pytest.raises(AttributeError, match="FairMagic"):
        _ = fairbits.FairMagic
