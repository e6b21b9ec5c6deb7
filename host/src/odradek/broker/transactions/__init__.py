"""Code about transactions that several handlers share."""
