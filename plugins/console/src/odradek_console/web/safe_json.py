"""JSON of values that clients sent: what is not a finite number, which JSON does not have, is null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse


class SafeJSON(JSONResponse):
    """JSON in which NaN and infinities are null."""

    def render(self, content: Any) -> bytes:
        """The bytes of the answer."""
        try:
            return super().render(content)
        except ValueError:
            return super().render(finite(content))


def finite(value: Any) -> Any:
    """A value with null for all numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, list | tuple) else value
