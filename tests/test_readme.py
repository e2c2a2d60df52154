"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.splitlines()[0])
def test_block_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})


def test_the_first_block_is_short_and_says_something(capsys):
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 13
    assert "print" in BLOCKS[0]
