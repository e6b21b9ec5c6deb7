"""Text as Kafka reads it: bytes that are not UTF-8 become U+FFFD (``new String(bytes, UTF_8)`` of Java).

Python's own ``replace`` differs for the bytes of a surrogate: it makes a character of each.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

LENIENT: Final = "odradek.lenient"
"""The ``errors`` argument of ``str`` and ``decode``."""
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def _rest(error: UnicodeError) -> tuple[str, int]:
    """All text from the first error on: a call for each error would be slow."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = _SURROGATE.sub(b"\xff", error.object[error.start :])
    return rest.decode("utf-8", "replace"), len(error.object)


codecs.register_error(LENIENT, _rest)
