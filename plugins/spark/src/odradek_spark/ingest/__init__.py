"""From the topic to the tables, exactly once."""
