"""The certificates of TLS listeners, as far as clients change their settings. The server keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class CertificateStore(Protocol):
    """Certificates whose settings change at run time."""

    def check(self, texts: Mapping[str, str]) -> None:
        """Check that values could be set.

        Args:
            texts: All values that would be set at run time, by full key.

        Raises:
            ConfigError: A value is wrong, or a certificate cannot be loaded.
        """

    def update(self, texts: Mapping[str, str]) -> None:
        """Replace all values that are set at run time."""


class NoCertificates:
    """A host without TLS listeners."""

    def check(self, texts: Mapping[str, str]) -> None:
        """Nothing: the values are for listeners that do not exist."""

    def update(self, texts: Mapping[str, str]) -> None:
        """Nothing."""
