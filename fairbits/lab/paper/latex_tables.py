"""Tables in LaTeX, for a paper."""

import re

from fairbits.report.wording import Table

NARROW = 6  # columns; a wider table is fitted to the line
LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{character: f"${character}$" for character in "<>|"},
    **{character: f"{{{character}}}" for character in "[]*"},  # after a line's end they would be its options
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{"–": "--", "−": "$-$", "±": r"$\pm$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"},
}


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
