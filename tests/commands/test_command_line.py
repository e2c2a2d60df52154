"""The command line as a whole: help, versions, failures, pipes, completion, data, bench."""

import json
import subprocess
import sys
import warnings

import pandas as pd
import pytest

import fairbits as library
from fairbits.commands import bench, data, terminal
from fairbits.commands.app import app
from fairbits.errors import InputError, InputWarning

HEAVY = {"torch", "sklearn", "pandas", "numpy", "scipy", "pyarrow", "altair"}
COMMANDS = ["fit", "transform", "predict", "audit", "certify", "report", "path", "reproduce", "bench", "data"]


HELPS = ["--version", "--help", *(f"{name} --help" for name in COMMANDS)]


@pytest.fixture(scope="module")
def modules_after():
    """Return the modules that a fresh interpreter has loaded after each call, one after the other."""
    code = (
        "import sys; from fairbits.commands import main\n"
        f"for arguments in {HELPS!r}:\n"
        "    sys.argv = ['fairbits', *arguments.split()]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "    print(*sys.modules, file=sys.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    return dict(zip(HELPS, map(set, map(str.split, said.splitlines())), strict=True))


@pytest.mark.parametrize("arguments", HELPS)
def test_help_loads_nothing_heavy(modules_after, arguments):
    assert not HEAVY & modules_after[arguments]


def test_help_names_the_commands_and_the_exit_codes(fairbits):
    ended = fairbits("--help")
    text = " ".join(ended.out.split())
    assert ended.code == 0
    for word in (
        *COMMANDS,
        "Exit codes",
        "3 not certified",
        "5 certified but not useful",
        "--install-completion",
        "--show-completion",
    ):
        assert word in text


@pytest.mark.parametrize("command", [*(name for name in COMMANDS if name != "data"), "data list", "data fetch"])
def test_every_command_can_print_json(fairbits, command):
    assert "--json" in fairbits(*command.split(), "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(fairbits, command):
    assert fairbits(command, "--help").code == 0


def test_version(fairbits):
    assert fairbits("--version").out == f"fairbits {library.__version__}\n"


def test_usage_is_exit_code_two(fairbits):
    assert fairbits("transform").code == 2
    assert fairbits("fly").code == 2
    assert fairbits("certify", "m", "t.csv", "--draws", "many").code == 2


def failing(error):
    def run(*_):
        raise error

    return run


@pytest.mark.parametrize("error", [KeyError("lost"), ValueError("of a library"), OSError("of a library")], ids=repr)
def test_an_unexpected_error_is_a_paragraph(fairbits, monkeypatch, error):
    monkeypatch.setattr(data, "_described", failing(error))
    ended = fairbits("data", "list")
    assert ended.code == terminal.BUG == 70
    assert ended.err.startswith(f"fairbits: unexpected {type(error).__name__}: {error}. This is a bug in fairbits.")
    assert "--debug" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(fairbits, monkeypatch, place):
    monkeypatch.setattr(data, "_described", failing(InputError("is odd.", argument="code_size", value=3)))
    arguments = ["data", "list"]
    arguments.insert(place, "--debug")
    ended = fairbits(*arguments)
    assert ended.code == 1
    assert "Traceback (most recent call last)" in ended.err
    assert fairbits("data", "list").err == "fairbits: --code-size 3 is odd.\n"


class OddWarning(InputWarning):
    """A warning of ours."""


@pytest.mark.filterwarnings("always")
def test_warnings_are_sentences_said_once(fairbits, monkeypatch):
    def warn(name, described=data._described):
        warnings.warn(OddWarning("'sex' is odd.", argument="sensitive_features", value=None), stacklevel=1)
        warnings.warn("of another library", DeprecationWarning, stacklevel=1)
        return described(name)

    monkeypatch.setattr(data, "_described", warn)
    assert fairbits("data", "list").err == "Warning: The sensitive column 'sex' is odd.\n"
    with pytest.warns() as caught:  # as Python does
        assert fairbits("--debug", "data", "list").err == ""
    assert {w.category for w in caught} == {OddWarning, DeprecationWarning}


def test_ctrl_c_is_a_line(fairbits, monkeypatch):
    monkeypatch.setattr(data, "_described", failing(KeyboardInterrupt()))
    ended = fairbits("data", "list")
    assert ended.code == 130
    assert ended.err.strip() == "fairbits: interrupted."


def test_a_reader_who_goes_away_is_no_error():
    """In a process of its own, as Python itself complains at the end of one; what it prints is short work."""
    entry = {"name": "n", "how": "h", "rows": 1, "label": "y", "sensitive": "s", "caveats": []}
    code = f"from fairbits.commands import data, main; data._described = lambda _: {entry!r}; main()"
    command = [sys.executable, "-c", code, "data", "list"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (1, terminal.BROKEN_PIPE)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fairbits tr", "transform"),
        ("fairbits path ", "bank"),
        ("fairbits fit com", "compas"),
        ("fairbits fit tab", "table.csv"),
        ("fairbits data fetch mn", "mnist"),
    ],
)
def test_the_shell_completes(tmp_path, monkeypatch, capsys, words, expected):
    (tmp_path / "table.csv").touch()
    monkeypatch.chdir(tmp_path)
    shell = {"_FAIRBITS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app(prog_name="fairbits")
    assert expected in capsys.readouterr().out.split()


def test_data_are_listed_with_what_is_wrong_with_them(fairbits):
    out = fairbits("data", "list").out
    assert "6,150 rows; label two_year_recid; sensitive race" in out
    assert "Race was recorded by the authorities" in out
    entries = {entry["name"]: entry for entry in json.loads(fairbits("data", "list", "--json").out)}
    assert set(entries) == {"compas", "adult", "bank", "mnist"}
    assert sum(entries["adult"]["groups"].values()) == entries["adult"]["rows"] == 32_561


def test_a_shipped_table_becomes_a_file_that_fits(fairbits, tmp_path):
    ended = fairbits("data", "fetch", "compas", "-o", tmp_path / "compas.csv")
    assert ended.code == 0
    table = pd.read_csv(tmp_path / "compas.csv")
    assert {"two_year_recid", "race"} < set(table.columns)
    assert len(table) == 6150
    assert "--label two_year_recid --sensitive race" in ended.out
    record = json.loads(fairbits("data", "fetch", "compas", "-o", tmp_path / "c.parquet", "--json").out)
    assert (record["rows"], record["label"], record["output"]) == (6150, "two_year_recid", str(tmp_path / "c.parquet"))
    assert fairbits("data", "fetch", "compas", "-o", tmp_path / "compas.csv").code == 1


def test_mnist_is_fetched_by_its_loader(fairbits, monkeypatch, tmp_path):
    monkeypatch.setattr("fairbits.datasets.mnist.fetch_mnist", lambda home: f"images in {home}")
    assert f"images in {tmp_path}" in fairbits("data", "fetch", "mnist", "--data-home", tmp_path).out


def test_bench_measures_three_sizes(fairbits, monkeypatch):
    assert len(bench.SIZES) == 3
    monkeypatch.setattr(bench, "SIZES", (300, 600))
    record = json.loads(fairbits("bench", "--json").out)
    assert [size["rows"] for size in record["sizes"]] == [300, 600]
    assert all(size["epoch_seconds"] > 0 for size in record["sizes"])
    assert "rows per s, transform" in fairbits("bench").out
