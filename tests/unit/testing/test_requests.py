"""The context of a request for tests of plugins."""

from __future__ import annotations

import dataclasses
import inspect

from odradek.testing import request_context


def test_each_field_of_both_contexts_can_be_given() -> None:
    given = {name: f"the {name}" for name in inspect.signature(request_context).parameters}

    made = request_context(**given)  # type: ignore[arg-type]

    found = {
        each.name: getattr(context, each.name)
        for context in (made, made.connection)
        for each in dataclasses.fields(context)
    }
    assert found == {**given, "connection": made.connection}


def test_by_default_it_is_a_push_without_a_login_on_a_connection_of_its_own() -> None:
    one, other = request_context(), request_context()

    assert (one.api_key, one.connection.principal) == (72, "User:ANONYMOUS")
    assert one.connection is not other.connection
