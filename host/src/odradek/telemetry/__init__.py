"""KIP-714: who is told to push what, and what is done with a push."""
