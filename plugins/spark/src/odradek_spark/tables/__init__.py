"""The tables of a dataset: schemas, files and commits. Only `load_dataset` needs Spark."""
