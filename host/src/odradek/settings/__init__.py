"""Declared settings: each key has one declaration, and everything else is made of it."""
