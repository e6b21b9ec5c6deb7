"""What a subscription would bring, before it is accepted: series, bytes, pushes, and broken budgets."""
