"""What the metrics of clients mean: the reference of all metrics, troubles, names of applications."""
