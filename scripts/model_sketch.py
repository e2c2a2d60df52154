"""Draw the paper's model as docs/images/model.svg and .png: python scripts/model_sketch.py."""

from html import escape
from pathlib import Path

import vl_convert

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1000, 400
INK, SOFT, CODE, LEAK = "#222222", "#8a8a8a", "#D55E00", "#0072B2"  # Okabe and Ito
ROW = 150  # y of the middle of the network
THETAS, BITS = (0.9, 0.2, 0.6, 0.5), (1, 0, 1, 0)


def text(x: float, y: float, words: str, *, colour: str = INK, size: int = 17, anchor: str = "middle") -> str:
    """Return a line of text."""
    style = f'font-family="sans-serif" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(words)}</text>'


def arrow(x: float, y: float, x2: float, y2: float, colour: str = INK, dashes: str = "") -> str:
    """Return an arrow from one point to another."""
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    end = "head" if colour == INK else "leak"
    return (
        f'<path d="M{x},{y}L{x2},{y2}" stroke="{colour}" stroke-width="2" marker-end="url(#{end})"{dash} fill="none"/>'
    )


def box(x: float, y: float, width: float, height: float, colour: str = INK, fill: str = "#ffffff") -> str:
    """Return a box with round corners, around its middle."""
    place = f'x="{x - width / 2}" y="{y - height / 2}" width="{width}" height="{height}" rx="8"'
    return f'<rect {place} fill="{fill}" stroke="{colour}" stroke-width="2"/>'


def neurons(x: float, marks: list[tuple[str, str]], colour: str) -> list[str]:
    """Return a column of neurons, each with what it holds and its filling."""
    found = []
    for i, (words, fill) in enumerate(marks):
        y = ROW + 46 * (i - (len(marks) - 1) / 2)
        found += [f'<circle cx="{x}" cy="{y}" r="20" fill="{fill}" stroke="{colour}" stroke-width="2"/>']
        found.append(text(x, y + 6, words, size=16))
    return found


def head(name: str, colour: str) -> str:
    """Return the head of arrows of a colour."""
    shape = f'<path d="M0,0L10,5L0,10Z" fill="{colour}"/>'
    place = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"'
    return f'<marker id="{name}" {place}>{shape}</marker>'


def sketch() -> str:
    """Return the figure: x, hidden layers, theta, one drawn code, head, label; S and the leakage below."""
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', head("head", INK), head("leak", LEAK)]
    parts += [box(75, ROW, 90, 70), text(75, ROW - 2, "x"), text(75, ROW + 20, "a row", colour=SOFT, size=14)]
    parts += [
        box(255, ROW, 130, 70),
        text(255, ROW - 2, "hidden layers"),
        text(255, ROW + 20, "real or binary", size=14),
    ]
    parts += neurons(430, [(f"{theta:g}", "#ffffff") for theta in THETAS], INK)
    parts += neurons(590, [(str(bit), "#fbe3d3" if bit else "#ffffff") for bit in BITS], CODE)
    parts += [box(750, ROW, 90, 70), text(750, ROW + 6, "head")]
    parts += [text(900, ROW - 2, "p(y | T)"), text(900, ROW + 20, "cross-entropy", colour=SOFT, size=14)]
    parts += [text(430, 30, "θ(x)"), text(590, 30, "T, one draw", colour=CODE)]
    parts.append(text(510, 52, "Tᵢ ~ Bernoulli(θᵢ)", size=14, colour=SOFT))
    parts += [arrow(x, ROW, x2, ROW) for x, x2 in ((122, 186), (322, 404), (456, 564), (616, 702), (797, 850))]
    parts += [box(180, 330, 130, 60, LEAK), text(180, 326, "S", colour=LEAK)]
    parts.append(text(180, 348, "in training only", colour=SOFT, size=14))
    parts += [box(510, 330, 330, 60, LEAK), text(510, 325, "leakage: Σᵢ I(Tᵢ;S) or I(T;S)", colour=LEAK)]
    parts.append(text(510, 348, "from the θ of every group's rows", colour=SOFT, size=14))
    parts += [arrow(246, 330, 342, 330, LEAK, "6 4"), arrow(430, 246, 470, 297, LEAK, "6 4")]
    parts.append(text(710, 326, "loss = (1 − γ) cross-entropy + γ leakage", anchor="start", size=14))
    parts.append(text(710, 350, "gradients go through θ", anchor="start", size=14, colour=SOFT))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    svg = sketch()
    (IMAGES / "model.svg").write_text(svg, encoding="utf-8")
    (IMAGES / "model.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))
