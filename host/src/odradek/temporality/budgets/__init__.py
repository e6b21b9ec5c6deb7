"""Budgets for series: how many each client, app, principal and label may have, and where the others go."""
