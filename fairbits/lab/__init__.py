"""The paper's experiments: plans, runs, searches, tables and figures; `reproduce` and `report` load it."""
