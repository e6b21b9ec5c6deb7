"""The form in which a row of the host's own metrics is offered."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Instrument(NamedTuple):
    """Name, kind, unit and meaning."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    description: str
