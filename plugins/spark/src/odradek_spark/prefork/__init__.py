"""Python workers of a session on this machine are forked from one process that has imported everything."""
