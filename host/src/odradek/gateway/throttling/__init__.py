"""Quotas at the gateway: charges, throttle times in responses, and clients that are not read for a while."""
