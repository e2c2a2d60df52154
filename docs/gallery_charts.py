"""Pictures of the altair charts in the gallery: its pages need no network to draw them."""

import ast

import altair as alt
from sphinx_gallery.scrapers import figure_rst


def last_chart(block, block_vars, gallery_conf):
    """Save the chart that a block of an example ends with, as a notebook would show it, and return how to show it."""
    kind, code, _ = block[:3]
    last = ast.parse(code).body[-1:] if kind == "code" else []
    names = [node.value.id for node in last if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)]
    charts = [block_vars["example_globals"][name] for name in names]
    files = []
    for chart in charts:
        if isinstance(chart, alt.TopLevelMixin):
            files.append(next(block_vars["image_path_iterator"]))
            chart.save(files[-1], scale_factor=2)
    return figure_rst(files, gallery_conf["src_dir"])
