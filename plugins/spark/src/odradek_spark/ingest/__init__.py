"""Ingest: from the topic into the tables, exactly once."""
