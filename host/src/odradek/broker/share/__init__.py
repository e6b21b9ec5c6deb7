"""Share groups: fetching, acknowledging, sessions."""
