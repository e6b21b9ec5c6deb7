"""Remote write: sends the series of clients to a receiver of Prometheus' remote-write protocol."""
