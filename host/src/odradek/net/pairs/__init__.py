"""The two ends of a gateway's connections: a client's and a broker's."""
