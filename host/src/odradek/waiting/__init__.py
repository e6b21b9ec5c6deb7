"""Clocks and timers, answers that come later, work in steps: all that waits and goes on."""
