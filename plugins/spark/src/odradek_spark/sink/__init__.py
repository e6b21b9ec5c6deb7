"""``format("odradek")`` as a sink: pushes or rows into the tables, each batch once."""
