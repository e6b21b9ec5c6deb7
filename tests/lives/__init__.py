"""Whole lives of clients, hosts and gateways on one simulated loop, each told by the seed of its chance."""
