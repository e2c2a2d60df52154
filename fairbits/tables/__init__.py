"""Files to tables and tasks, and the rows of a table that a saved model reads."""
