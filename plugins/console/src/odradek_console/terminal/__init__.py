"""``odradek clients``, ``odradek top``, ``odradek watch`` and ``odradek subscriptions``."""
