"""How large the house is: lines and files, names used twice, and how far one has to walk for a command.

python scripts/house.py [PACKAGE] prints a Markdown table; PACKAGE is the folder of another version of fairbits.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

GROUPS = {"rivals": "rivals", "lab": "lab"}
PATHS = {
    "fairbits fit": "fit table.csv --label paid --sensitive sex --max-disparity 0.5 --epochs 2 -o model",
    "fairbits transform": "transform model table.csv -o bits.csv",
}
# Runs in the version that is measured: a table, a command or a fit, and which functions of the package were called.
TRACE = """
import json, sys
import numpy as np, pandas as pd
called = set()
def note(frame, event, _):
    name = frame.f_code.co_filename
    is_function = frame.f_code.co_flags & 1 and not frame.f_code.co_name.startswith("<")  # not a class or module body
    if event == "call" and name.startswith(PACKAGE) and is_function:
        called.add((name, frame.f_code.co_qualname))
rng = np.random.default_rng(0)
table = pd.DataFrame({"sex": rng.choice(["f", "m"], 900), "age": rng.normal(size=900)})
table["paid"] = (table.age + rng.normal(size=900) > 0).astype(int)
if COMMAND:
    table.to_csv("table.csv", index=False)
    try:
        from fairbits.commands import main
    except ImportError:
        from fairbits.cli import main
    sys.argv = ["fairbits", *COMMAND.split()]
    run = main
else:
    from fairbits import BinaryMIClassifier
    run = lambda: BinaryMIClassifier(max_epochs=2).fit(table[["age"]], table.paid, sensitive_features=table.sex)
sys.setprofile(note)
try:
    run()
except SystemExit:
    pass
sys.setprofile(None)
print(json.dumps([len({file for file, _ in called}), len(called)]), file=sys.stderr)
"""


def main() -> None:
    """Measure the package and print the table."""
    package = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "fairbits").resolve()
    files = sorted(package.rglob("*.py"))
    lines = {file: len(file.read_text().splitlines()) for file in files}
    folders: dict[str, list[Path]] = {}
    for file in files:
        parts = file.relative_to(package).parts
        folders.setdefault(parts[0] if len(parts) > 1 else "(top)", []).append(file)
    rows = [(name, sum(lines[f] for f in own), len(own)) for name, own in sorted(folders.items())]
    library = [row for row in rows if row[0] not in GROUPS]
    rows += [
        ("library", sum(r[1] for r in library), sum(r[2] for r in library)),
        ("all", sum(lines.values()), len(files)),
    ]
    print("| folder | lines | files |\n|---|---:|---:|", *(f"| {n} | {a:,} | {b} |" for n, a, b in rows), sep="\n")
    names = Counter(file.name for file in files if file.name != "__init__.py")
    print("\n| measure | value |\n|---|---:|")
    print(f"| file names used more than once | {sum(count > 1 for count in names.values())} |")
    print(f"| words of prose in string literals | {sum(prose_words(file) for file in files):,} |")
    texts = [file.read_text().split() for file in package.rglob("*.toml") if "plans" not in file.parts]
    print(f"| words in files of texts (TOML) | {sum(map(len, texts)):,} |")
    print(f"| constructor parameters of BinaryMIClassifier | {constructor_parameters(package)} |")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in {**PATHS, "BinaryMIClassifier.fit": ""}.items():
            reached, functions = walked(package, command, folder)
            print(f"| {name}: files walked through (functions) | {reached} ({functions}) |")


def prose_words(file: Path) -> int:
    """Count the words of string literals that are sentences: four words or more, docstrings left out."""
    tree = ast.parse(file.read_text())
    places = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, places) and _documented(n)}
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docstrings]
    return sum(len(text.split()) for text in texts if isinstance(text, str) and len(text.split()) >= 4)


def _documented(node: ast.AST) -> bool:
    first = node.body[0] if getattr(node, "body", None) else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def constructor_parameters(package: Path) -> int:
    """Count what the constructor of BinaryMIClassifier takes."""
    code = "import inspect, fairbits; print(len(inspect.signature(fairbits.BinaryMIClassifier).parameters))"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run([sys.executable, "-c", code], cwd=package, env=environment, capture_output=True, check=True)
    return int(done.stdout)


def walked(package: Path, command: str, folder: str) -> tuple[int, int]:
    """Return how many files and functions of the package a command, or one fit, runs through."""
    code = f"PACKAGE, COMMAND = {str(package)!r}, {command!r}\n{TRACE}"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    reached, functions = json.loads(done.stderr.splitlines()[-1])
    return reached, functions


if __name__ == "__main__":
    main()
