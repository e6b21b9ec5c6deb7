"""Configuration resources: what clients describe and alter."""
