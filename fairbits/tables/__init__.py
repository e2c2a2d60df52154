"""Files to tables and tasks, and the rows of a table that a saved model reads.

`table_file` to `task` know nothing of models; `fitted_model`, `group_reader` and `table_frame` are for a saved one.
"""
