"""The tables of telemetry: their schemas, the decoder that fills them, and questions to them."""
