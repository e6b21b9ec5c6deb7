"""Responses that name addresses or API versions, rewritten as they pass."""
