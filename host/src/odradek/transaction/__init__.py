"""Transactions across partitions (KIP-98, KIP-360, KIP-890)."""
