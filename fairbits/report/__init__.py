"""Figures, tables and pages made from records; nothing here trains."""
