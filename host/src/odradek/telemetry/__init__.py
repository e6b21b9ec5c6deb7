"""KIP-714: subscriptions of clients, and the handling of their pushes."""
