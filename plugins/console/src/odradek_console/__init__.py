"""The clients of a host or a cluster, as people look at them: inventory, last hours, findings."""
