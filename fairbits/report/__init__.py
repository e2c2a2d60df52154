"""Figures, tables and pages made from records; nothing here trains."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairbits.report.frontier import frontier_chart, save_chart

__all__ = ["frontier_chart", "save_chart"]


def __getattr__(name: str) -> Any:  # tables can be written without the packages that draw
    if name not in __all__:
        raise AttributeError(f"module 'fairbits.report' has no attribute {name!r}")
    from fairbits.report import frontier

    return getattr(frontier, name)
