"""JSON against its schema. Its library is imported by the tests that use it: that takes seconds."""

from __future__ import annotations

from typing import Any


def misfits(value: object, schema: dict[str, Any]) -> list[str]:
    """What is wrong with a JSON value."""
    from jsonschema import Draft202012Validator

    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]
