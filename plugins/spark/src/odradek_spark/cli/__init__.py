"""``odradek spark``: the command line of the pipeline and of queries on its tables."""
