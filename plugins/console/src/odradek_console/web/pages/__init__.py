"""The pages, each with its routes."""
