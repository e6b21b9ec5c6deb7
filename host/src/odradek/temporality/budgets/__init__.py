"""Budgets: limits of the series of a client, app, principal or label, and the fate of series over them."""
