"""Messages as declared by Kafka 4.3, one module per API. This one imports none of them."""
