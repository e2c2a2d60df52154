"""What goes wrong at first: docs/first-mistakes.md lists each mistake with its answer, and every line of it is run."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from people import population

from fairbits.modelfile.manifest import write_record

PAGE = Path(__file__).parents[2] / "docs" / "first-mistakes.md"
ROW = re.compile(r"^\| (.+) \| `fairbits (.+)` \| (\d+) \| (.+) \|$", re.MULTILINE)
MISTAKES = {row[0]: row[1:] for row in ROW.findall(PAGE.read_text(encoding="utf-8"))}
PEOPLE = population(300, 7)
MANY = [f"town {i}" for i in range(300)]
OTHERS = {name: 1 for name in ("id", "grade", "height", "job", "day")}
TWO = np.repeat(np.arange(150), 2)


def table(**columns):
    return PEOPLE.assign(**columns).to_csv(index=False).encode()


GOOD = table()
TABLES = {  # people.csv; where a mistake has no entry, it is in order
    "an Excel file with another name": b"PK\x03\x04" + bytes(50),
    "an empty file": b"",
    "column names alone": GOOD.splitlines()[0] + b"\n",
    "no column names": b"\n".join(GOOD.splitlines()[1:]),
    "an unusual separator": GOOD.replace(b",", b":"),
    "text that is not UTF-8": table(job="clérk").decode().encode("latin-1"),
    "two columns of one name": GOOD.replace(b"height", b"grade", 1),
    "a label with one value": table(paid="yes"),
    "a label with hundreds of values": table(paid=MANY),
    "a number as the label": table(paid=np.arange(300) * 1.5),
    "a label that is empty": table(paid=None),
    "a class of five rows": table(paid=["yes"] * 5 + ["no"] * 295),
    "one group": table(sex="F"),
    "hundreds of groups": table(sex=MANY),
    "a sensitive column that is empty": table(sex=None),
    "a group of five rows": table(sex=["X"] * 5 + ["F"] * 295),
    "a label that is the group": table(paid=np.where(PEOPLE.sex == "F", "yes", "no")),
    "ten rows": b"\n".join(GOOD.splitlines()[:11]),
    "columns that are constant": table(**OTHERS),
    "infinite numbers": table(grade=np.where(np.arange(300) < 9, np.inf, 1.0), height=1.5),
    "names and e-mail addresses": table(full_name=np.resize(MANY[:99], 300), contact=["a@b.org", "c@d.org"] * 150),
    "a column that is the label": table(refunded=(PEOPLE.paid == "yes") * 1),
    "a column that is the group": table(title=np.where(PEOPLE.sex == "F", "Ms", "Mr")),
    "several rows for a person": table(case=TWO, sex=np.where(TWO % 3, "F", "M")),
    "a column of the fit is missing": PEOPLE.drop(columns="grade").to_csv(index=False).encode(),
    "columns that the fit did not have": table(town="Ghent"),
    "groups spelt in another way": table(sex="woman"),
}


@pytest.fixture
def place(request, tmp_path, monkeypatch):
    """Return a folder with the table of a mistake, others, and a model if the mistake has to do with one."""
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.chdir(tmp_path)
    mistake = request.node.callspec.params["mistake"]
    Path("people.csv").write_bytes(TABLES.get(mistake, GOOD))
    Path("people.xlsx").touch()
    Path("folder").mkdir()
    Path("results").mkdir()
    Path("results", "mine.csv").touch()
    arguments = shlex.split(MISTAKES[mistake][0])
    if "model" in arguments or "decisions" in arguments:
        hard = request.getfixturevalue("hard")
        shutil.copytree(hard / "m", "model")
        shutil.copy(hard / "pay.csv", "fitted.csv")
    if "decisions" in arguments:
        shutil.copytree("model", "decisions")
        record = json.loads(Path("decisions", "audit.json").read_text())
        record["certificate"]["release"]["decision"] = True
        write_record(Path("decisions"), record)
    return arguments


def sentence(text):
    """Return what is printed, without the frame that usage errors have and without bullets."""
    return " ".join(re.sub(r"[─╭╮╰╯│]|─ Error|^- ", " ", text, flags=re.MULTILINE).split())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_the_answer_of_the_page(mistake, place, fairbits):
    _, code, answer = MISTAKES[mistake]
    answer = answer.replace(r"\|", "|")
    before = sorted(Path().rglob("*"))
    ended = fairbits(*place)
    assert ended.code == int(code), ended.err
    if ended.code == 1:
        assert sentence(ended.err) == f"fairbits: {answer}"
        assert sorted(Path().rglob("*")) == before
    assert answer in sentence(ended.out + ended.err)
    assert "Traceback" not in ended.err


def test_there_are_well_over_forty():
    assert len(MISTAKES) > 60
    assert set(TABLES) <= set(MISTAKES)
