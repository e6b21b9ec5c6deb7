"""Authentication: SASL mechanisms and the credentials they check. No sockets, no protocol messages."""
