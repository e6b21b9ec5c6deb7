"""Messages as declared by Kafka 4.4, one module per API. The package itself imports none of them."""
