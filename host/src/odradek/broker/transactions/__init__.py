"""What handlers share about transactions."""
