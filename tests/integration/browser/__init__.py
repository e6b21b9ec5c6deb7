"""Tests of pages in a browser. A package, so that pytest ends its fixtures with its last test."""
