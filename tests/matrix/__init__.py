"""Lives of real clients, healthy and sick, and what the console and Prometheus say of them."""
