"""``odradek spark``: the pipeline and the questions to its tables, on the command line."""
