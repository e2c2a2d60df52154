"""The paper's experiments: plans, runs, searches, tables and figures; `reproduce`, `report` and `bench` load it."""
