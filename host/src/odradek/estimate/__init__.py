"""Estimates of a subscription before it is accepted: series, bytes, pushes, and exceeded budgets."""
