"""What waits and goes on: clocks and timers, answers that come later, work in steps."""
