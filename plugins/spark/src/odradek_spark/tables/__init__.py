"""The tables of a dataset: their schemas, their files, their commits. No Spark but in `load_dataset`."""
