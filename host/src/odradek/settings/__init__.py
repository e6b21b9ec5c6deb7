"""Declared settings: each key has one declaration, from which everything else is derived."""
