"""Sends one message, which comes on standard input as JSON; the status tells whether it was taken.

A process of its own: whatever an endpoint answers, and however slowly, it costs the console nothing that the
end of this process does not give back.
"""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import sys
from typing import Final

import requests
from apprise import Apprise

MEMORY_BYTES: Final = 1 << 30
"""Of addresses, not of pages that are in use: an answer without an end is cut there."""


def main() -> int:
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    # A redirect to a page for logging in would look like success.
    requests.sessions.DEFAULT_REDIRECT_LIMIT = 0  # type: ignore[attr-defined]
    asked = json.load(sys.stdin)
    sender = Apprise()
    is_sent = sender.add(asked["url"]) and sender.notify(title=asked["title"], body=asked["body"])
    return 0 if is_sent else 1


if __name__ == "__main__":
    sys.exit(main())
