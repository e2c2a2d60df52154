"""Imports point down: a test walks every one of them, also relative ones and those by name."""

import ast
import importlib.util
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fairbits

PACKAGE = Path(fairbits.__file__).parent
LAYERS = [
    {"errors"},
    {"storage", "settings", "workers"},
    {"information", "metrics", "datasets", "encoding"},
    {"certificate", "nn"},
    {"training"},
    {"estimators"},
    {"auditing", "modelfile"},
    {"tables"},
    {"rivals"},
    {"report"},
    {"workflow"},
    {"dask"},
    {"lab"},
    {"commands"},
    {"__main__"},
]
ON_REQUEST = {f"fairbits.commands.{name}": "lab" for name in ("reproduce", "report", "bench")}  # loaded when called
ON_REQUEST["fairbits.workflow.rival_models"] = "rivals"  # fairbits fit --compare
LATER = {  # the only imports against the order
    "fairbits.report.page": "fairbits.report.sections",  # when a page is made: charts need the extra "report"
    "fairbits.commands.drawn_codes": "fairbits.commands.transform",  # for types alone
}
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {
    ".".join(("fairbits", *f.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): f for f in FILES
}


def part(module: str) -> str | None:
    """Return the part of the package a module belongs to: fairbits.nn.layers -> nn."""
    names = module.split(".")
    return names[1] if names[0] == "fairbits" and len(names) > 1 else None


@cache
def public_home(name: str) -> str | None:
    """Return the module that a public name of fairbits is loaded from."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    homes = {a.name: f"fairbits.{n.module}" for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    return homes.get(name)


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


@cache
def imported_modules(module: str, *, top_level_only: bool = False) -> set[str]:
    """Return the modules of fairbits that a module imports: absolutely, relatively, or by a name in quotes."""
    file = MODULES[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree, found = parsed(module), set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                home = public_home(alias.name) if source == "fairbits" else None
                found.add(home or (whole if whole in MODULES else source))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            found |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "fairbits" and not top_level_only:
            found |= {home for home in [public_home(node.attr)] if home}
    return {name for name in found if name.split(".")[0] == "fairbits"}


def layer(name: str) -> int:
    return next(i for i, parts in enumerate(LAYERS) if name in parts)


def test_imports_point_down():
    upward = [
        f"{module} imports {other}"
        for module in MODULES
        for other in {part(name) for name in imported_modules(module)} - {part(module), None}
        if module != "fairbits" and layer(other) >= layer(part(module))
    ]
    assert upward == []


def test_nothing_loads_the_lab_or_the_rivals_by_itself():
    """Rivals and the lab are loaded when somebody asks for them, not by the rest of the library."""
    loading = [
        module
        for module in MODULES
        if part(module) not in {"rivals", "lab", None}
        for found, allowed in (
            (imported_modules(module), {ON_REQUEST.get(module)}),
            (imported_modules(module, top_level_only=True), set()),
        )
        if {part(name) for name in found} & {"rivals", "lab"} - allowed
    ]
    assert loading == []


def imports_of_our_own():
    """Yield the module that imports, the one it imports from, and the names."""
    for module, file in MODULES.items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.Import):
                yield from ((module, alias.name, []) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                yield module, source, [alias.name for alias in node.names]


def test_every_import_of_our_own_finds_its_names():
    """Also inside functions: neither mypy nor loading the module would notice those that are wrong."""
    for module, source, names in imports_of_our_own():
        if source.split(".")[0] == "fairbits":
            found = importlib.import_module(source)
            lost = [name for name in names if not hasattr(found, name) and f"{source}.{name}" not in MODULES]
            assert not lost, f"{module} imports {lost} from {source}"


def test_no_imports_go_in_a_ring():
    """Within a part and inside functions, too: modules can be put in an order in which each needs those before it."""
    graph = {m: {n for n in imported_modules(m) if n in MODULES and n != m} for m in MODULES}
    for module, later in LATER.items():
        graph[module].remove(later)
    for package in [m for m in MODULES if MODULES[m].name == "__init__.py"]:
        for m in graph:
            if m.startswith(package + "."):
                graph[m].discard(package)
    list(TopologicalSorter(graph).static_order())


def test_every_file_of_the_package_has_a_true_name_of_its_own():
    vague = {"utils", "util", "misc", "common", "helpers", "helper"}
    assert not [f for f in FILES if f.stem in vague or f.parent.name in vague]
    names = Counter(f.name for f in FILES if f.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 1]


def test_no_module_has_the_name_of_what_its_package_exports():
    for name in [m for m in MODULES if MODULES[m].name == "__init__.py"]:
        exported = [n for n in ast.walk(parsed(name)) if isinstance(n, ast.ImportFrom)]
        names = {alias.asname or alias.name for node in exported for alias in node.names}
        assert not [n for n in names if f"{name}.{n}" in MODULES and n.islower()], name


IMPORTS = {  # in this order in one interpreter: starting another takes seconds
    "fairbits": "import fairbits",
    "commands": "import fairbits.commands",
    "own methods": "from fairbits import BinaryMIClassifier, CertifiedClassifier, audit, save",
    "everything": "from fairbits import *; from fairbits.rivals import *",
}


@pytest.fixture(scope="module")
def loaded():
    """Return the modules that a fresh interpreter has loaded after each of the imports."""
    program = "\n".join(["import sys", *(f"{code}\nprint(*sys.modules)" for code in IMPORTS.values())])
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(zip(IMPORTS, map(set, map(str.split, result.stdout.splitlines())), strict=True))


def test_importing_fairbits_is_cheap(loaded):
    heavy = {"torch", "sklearn", "optuna", "matplotlib", "altair", "dask", "wandb"}
    assert not heavy & loaded["fairbits"]
    assert not heavy & loaded["commands"]


def test_using_an_estimator_loads_no_optional_package(loaded):
    optional = {"optuna", "matplotlib", "altair", "dask", "distributed", "wandb", "jinja2", "fairlearn", "aif360"}
    optional |= {"onnx", "onnxscript", "onnxruntime"}
    assert "fairbits.rivals" in loaded["everything"]
    assert not optional & loaded["everything"]


def test_our_own_methods_load_no_rival(loaded):
    assert "torch" in loaded["own methods"]
    assert not [name for name in loaded["own methods"] if name.startswith(("fairbits.rivals", "fairbits.lab"))]


def test_public_names_are_where_they_are_said_to_be():
    assert set(fairbits.__all__) <= set(dir(fairbits))
    for name in fairbits.__all__:
        assert getattr(fairbits, name).__name__ == name
    with pytest.raises(AttributeError, match="FairMagic"):
        _ = fairbits.FairMagic
