"""One voice: words that readers stumbled over stay retired from everything they see."""

import ast
import re
from pathlib import Path

import pytest

import fairbits

PACKAGE = Path(fairbits.__file__).parent
ROOT = PACKAGE.parent
FILES = [
    *(file for ending in ("py", "toml", "j2", "js", "md") for file in PACKAGE.rglob(f"*.{ending}")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "examples").rglob("*.py"),
    *(ROOT / "benchmarks").glob("*.py"),
    *(ROOT / "results").glob("*/table.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")),
]
RETIRED = re.compile(
    r"\b(told|tells?|telling|foretold|anew|surely|mend(ed|s|ing)?|hand(ed|s|ing)? (on|out)|forg(ets?|etting|otten))\b"
    r"|\b(promise[sd]?|receivers?|gaps? in rates|flatters?|all the same|void(:| for)|said to be|what was said)\b"
    r"|\b(is|are) (no numbers?|none of)\b|\bends in none\b|\bask fewer\b|\btaken for other\b|\bfor true\b"
    r"|\btaken for another\b|\bclass to wish for\b|\bmethods of others\b|\balways alike\b|\bwhose row it is\b"
    r"|\bthat there (is|are) not\b|\bshall\b|\bwho answers for\b|\bhas (it )?as well\b|\b(is|are) others\b"
    r"|\b(Mind:|say --|say which columns|that is for you to know)|\b(for )?who (knows|sees|gets|receives|asks|holds)\b",
    re.IGNORECASE,
)
WHO = "anyone|anybody|someone|somebody|everyone|everybody|people|those|person|colleague|recipient"
NAMED = r"`promise`|\bpromise(?=='|=\"|=None| : )"  # the setting, which prose calls a guarantee
QUESTION = r"who gets what\b"  # of the report
ALLOWED = re.compile(rf"({WHO}) who |{QUESTION}|{{\w+|{NAMED}", re.IGNORECASE)  # names in braces are filled in


def sentences(file: Path) -> list[str]:
    """Return the texts of a file: all of it, or of Python the docstrings and other strings of several words."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py" or file.parent.name == "gallery":  # whose comments are prose
        return [text.replace("\\\n", "\n")]  # TOML joins lines at a backslash
    strings = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [string for string in strings if " " in string]  # a word alone is a name, such as a key of a record


def test_retired_words_do_not_come_back():
    found = [
        (str(file.relative_to(ROOT)), match[0])
        for file in sorted(FILES)
        for text in sentences(file)
        for match in RETIRED.finditer(ALLOWED.sub("", " ".join(text.split())))
    ]
    assert found == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Mind: Never the most probable class of any of 476 rows: yes.",
        "which describes it and is no second promise",
        "none of our attacks surely tells the groups apart",
        "Say which columns must not be told",
        "1 an input to mend",
        "it draws with a fixed seed, void for who knows it",
        "what is handed on together",
        "are not covered by any certificate: who sees both knows what these columns say",
        "Values of an earlier row stand in 1 of the rows, which were taken for other people.",
        "Each row is taken for another person.",
        "pass --favourable to name the class to wish for",
        "Who answers for the model, for the report and the card.",
        "Write them as text, those of one person always alike.",
        "a tree asks for a column that there is not",
        "the names of 4 columns are others",
    ],
)
def test_the_old_sentences_are_recognised(sentence):
    assert RETIRED.search(ALLOWED.sub("", sentence))
