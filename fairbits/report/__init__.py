"""Figures and pages made from records; nothing here trains."""

from fairbits.report.frontier import frontier_chart, save_chart

__all__ = ["frontier_chart", "save_chart"]
