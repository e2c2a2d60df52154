"""One voice: words that readers stumbled over stay retired from everything they see."""

import ast
import re
from pathlib import Path

import pytest

import fairbits

PACKAGE = Path(fairbits.__file__).parent
RETIRED = re.compile(
    r"\b(told|anew|surely|mend(ed|s)?|hand(ed|s)? (on|out)|forgets?|forgotten|void for|said to be|for true|foretold)\b"
    r"|\bMind:|\bfor who\b|\bwho (knows|sees|gets|receives|asks)\b|That is for you to know"
    r"|no second promise|\bsay --"
)
WHO = "anyone|anybody|someone|somebody|everyone|everybody|people|those|person|colleague|receiver|recipient"
ALLOWED = re.compile(rf"({WHO}) who ", re.I)


def sentences(file: Path) -> list[str]:
    """Return the texts of a file: all of it, or of Python the docstrings and other strings."""
    if file.suffix != ".py":
        return [file.read_text(encoding="utf-8")]
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


@pytest.mark.parametrize(
    "file", sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml"), *PACKAGE.rglob("*.j2")]), ids=str
)
def test_retired_words_do_not_come_back(file):
    found = [m[0] for text in sentences(file) for m in RETIRED.finditer(ALLOWED.sub("", text))]
    assert not found
