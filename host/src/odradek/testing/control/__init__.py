"""The control port of ``odradek serve --ephemeral``: what the fixture offers, for tests in any language."""
