"""At-least-once delivery in batches: queues, retries, dead letters and their accounting."""
