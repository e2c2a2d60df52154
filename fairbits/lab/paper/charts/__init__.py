"""The figures, each under the name of the section it belongs to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairbits.lab.paper.charts.image_figure import sample_images
from fairbits.lab.paper.charts.plane_figure import plane_chart
from fairbits.lab.paper.charts.representation_figure import representation_chart
from fairbits.lab.paper.charts.strength_figure import strengths_chart
from fairbits.lab.paper.charts.tradeoff_figure import tradeoff_chart
from fairbits.lab.paper.record_frames import Record, of_kind, planes, tuned_scores, views
from fairbits.lab.paper.strength_tables import fold_means, frontiers, one_depth_each, several_depths_each
from fairbits.report.charts import save_chart

Charts = Iterator[tuple[str, Any]]


def write_charts(records: list[Record], output: Path) -> list[Path]:
    """Draw what there are records for; return the files."""
    files = [file for name, chart in paper_charts(records) for file in save_chart(chart, output, name)]
    return [*files, *(sample_images(output) if of_kind(records, "images") else [])]


def paper_charts(records: list[Record]) -> Charts:
    """Yield the charts that records alone give, each under the name of its section."""
    for part in (_tradeoffs, _representations, _strengths, _planes):
        yield from part(records)


def _tradeoffs(records: list[Record]) -> Charts:
    paths = fold_means(frontiers(records))
    for dataset, scores in tuned_scores(records).groupby("dataset"):
        yield f"{dataset}-tradeoff", tradeoff_chart(scores, paths[(paths.dataset == dataset) & (paths.depth == 1)])


def _representations(records: list[Record]) -> Charts:
    for dataset, found in views(records).groupby("dataset"):
        yield f"{dataset}-representation", representation_chart(found)


def _strengths(records: list[Record]) -> Charts:
    for name, scores in one_depth_each(records).items():
        yield name, strengths_chart(scores, f"{scores.dataset.iloc[0]}: stability of the trade-off")
    for name, scores in several_depths_each(records).items():
        title = f"{scores.dataset.iloc[0]}: the trade-off with more hidden layers"
        yield name, strengths_chart(scores, title, by_depth=True)


def _planes(records: list[Record]) -> Charts:
    for dataset, found in planes(records).groupby("dataset"):
        yield f"{dataset}-plane", plane_chart(found)
