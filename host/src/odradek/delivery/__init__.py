"""At least once, in batches: what is queued, tried again or given up, and the accounts of it."""
