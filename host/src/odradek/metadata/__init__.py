"""Topics, configurations, quotas and credentials that operators set, in one SQLite file."""
