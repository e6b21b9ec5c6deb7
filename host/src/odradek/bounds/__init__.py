"""Bounds of what strangers send or files hold: regular expressions, lists, small files, log lines.

Also the names of rooms that are loaded on first use.
"""
