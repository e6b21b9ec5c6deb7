"""The metrics of the host itself."""
