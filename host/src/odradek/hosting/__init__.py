"""Plugins that run in a program: found, offered to the rooms, run, and fed."""
