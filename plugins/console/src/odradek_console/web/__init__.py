"""The pages and the REST API of the console."""
