"""A table and its two spellings, Markdown and LaTeX."""

import re
from dataclasses import dataclass

NARROW = 6  # columns; a wider table is fitted to the line
LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{character: f"${character}$" for character in "<>|"},
    **{character: f"{{{character}}}" for character in "[]*"},  # after a line's end they would be its options
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{"–": "--", "−": "$-$", "±": r"$\pm$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"},
}


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; `name` is the label that LaTeX refers to, notes are sentences below."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(table: Table) -> str:
    r"""Return a table as Markdown.

    >>> print(markdown(Table("t", "Two methods", ("method", "AUC"), (("a|b", "0.7"),), ("One fold.",))))
    **Two methods**
    <BLANKLINE>
    | method | AUC |
    |---|---|
    | a\|b | 0.7 |
    <BLANKLINE>
    One fold.
    """
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (table.head, *table.rows))
    head, *rows = (f"| {' | '.join(row)} |" for row in cells)
    return "\n\n".join([f"**{table.title}**", "\n".join([head, "|" + "---|" * len(table.head), *rows]), *table.notes])


def latex(table: Table) -> str:
    """Return a table as a LaTeX float; it needs booktabs and, to fit more than six columns, graphicx."""
    head, *rows = (" & ".join(map(escape, cells)) + r" \\" for cells in (table.head, *table.rows))
    start, end = rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}", r"\end{tabular}"
    body = "\n".join([start, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end])
    if len(table.head) > NARROW:
        body = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{body}}}"
    names = [rf"\caption{{{escape(table.title)}}}", rf"\label{{tab:{table.name}}}"]
    notes = [rf"\par\smallskip {{\footnotesize {escape(note)}\par}}" for note in table.notes]
    return "\n".join([r"\begin{table}[htbp]", r"\centering", *names, body, *notes, r"\end{table}"])


def escape(text: str) -> str:
    r"""Return text as LaTeX of plain ASCII; a character without a spelling becomes its number.

    >>> print(escape("50 % of [a_b] ± -0.1 µ"))
    50 \% of {[}a\_b{]} $\pm$ $-$0.1 (U+00B5)
    """
    text = re.sub(r"(?<![\w.)-])-(?=\d)", "−", text)  # a sign, no hyphen
    return "".join(LATEX.get(c, c if c.isascii() else f"(U+{ord(c):04X})") for c in text)
