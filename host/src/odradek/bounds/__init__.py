"""Bounds of what strangers send or files hold: regular expressions, lists, small files, log lines."""
