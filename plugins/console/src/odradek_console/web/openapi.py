"""The REST API as OpenAPI 3.1 describes it, from the tables and the classes of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from odradek_console.json_form import JsonRow, Schema, form
from odradek_console.web.table import GROUP, MOST_ROWS, PAGE, PAGE_ROWS, ROWS, SEARCH, SORT, Table

PATH: Final = "/api/v1/openapi.json"
REFUSALS: Final = {
    "400": "The query makes no sense; the error says why.",
    "401": "Nobody is logged in.",
    "429": "The user sends too many requests; Retry-After says how many seconds to wait.",
    "502": "The cluster refuses, or does not answer.",
}
ERROR: Final[Schema] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


def document(
    tables: Mapping[str, Table[Any]],
    objects: Mapping[str, tuple[str, type[JsonRow]]],
    further: Mapping[str, Sequence[Schema]],
    version: str,
) -> dict[str, Any]:
    """The document.

    Args:
        tables: By their paths.
        objects: The summary and the class of what is at other paths.
        further: Parameters of single paths, as `query` makes them.
        version: The version of the console.
    """
    paths = {path: {"get": table_operation(path, each)} for path, each in tables.items()}
    paths |= {path: {"get": object_operation(path, *each)} for path, each in objects.items()}
    for path, operation in paths.items():
        if "{" in path:
            operation["get"]["responses"]["404"] = refusal("Nothing has this name.")
    for path, found in further.items():
        paths[path]["get"]["parameters"] += found
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Odradek console",
            "version": version,
            "description": "Clients of Kafka that push telemetry. All of it can only be read.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def table_operation(path: str, table: Table[Any]) -> dict[str, Any]:
    """The request for rows of a table."""
    row = form(table.row).schema
    rows = {
        "type": "object",
        "properties": {
            "total": {"type": "integer", "description": "Rows on all pages."},
            "page": {"type": "integer"},
            table.name: {"type": "array", "items": row},
        },
        "required": ["total", "page", table.name],
    }
    counted = {
        "type": "object",
        "properties": {"value": {"type": "string"}, "rows": {"type": "integer"}}
        | {each.id: {"description": each.heading} for each in table.summaries},
        "required": ["value", "rows"],
    }
    groups = {
        "type": "object",
        "properties": {
            "total": {"type": "integer"},
            "group": {"type": "string"},
            "groups": {"type": "array", "items": counted},
        },
        "required": ["total", "group", "groups"],
    }
    return {
        "operationId": f"list-{table.name}",
        "summary": f"The table {table.name}, page by page",
        "parameters": path_parameters(path) + parameters(table),
        "responses": responses({"anyOf": [rows, groups]}),
    }


def parameters(table: Table[Any]) -> list[dict[str, Any]]:
    """The parameters of a table: those that all have, and a filter of each column."""
    names = [each.id for each in table.columns]
    groups = [each.id for each in table.columns if each.groups]
    orders = [*names, *(f"-{each}" for each in names)]
    common = [
        query(SEARCH, "Only rows that contain this text, in any case.", {"type": "string"}),
        query(SORT, "The column to sort by, with - in front of it for the opposite order.", enum(orders)),
        query(PAGE, "The page, from 1 on.", {"type": "integer", "minimum": 1}),
        query(ROWS, f"Rows of a page, {PAGE_ROWS} by default.", {"type": "integer", "maximum": MOST_ROWS}),
    ]
    if groups:
        common.append(query(GROUP, "Count the rows by this column instead.", enum(groups)))
    text = 'A value or a pattern with * and ?; ! in front of it for the opposite; "" for an empty value.'
    number = f"{text} Or a comparison such as >5."
    return common + [
        query(each.id, f"{each.heading}. {number if each.number else text}", {"type": "string"})
        for each in table.columns
    ]


def query(name: str, description: str, schema: Schema) -> dict[str, Any]:
    """A parameter in the query."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def enum(values: list[str]) -> Schema:
    """One of some texts."""
    return {"type": "string", "enum": values}


def object_operation(path: str, summary: str, kind: type[JsonRow]) -> dict[str, Any]:
    """The request for one object."""
    words = path.removeprefix("/api/v1/").replace("{", "").replace("}", "")
    return {
        "operationId": "get-" + words.replace("/", "-"),
        "summary": summary,
        "parameters": path_parameters(path),
        "responses": responses(form(kind).schema),
    }


def path_parameters(path: str) -> list[dict[str, Any]]:
    """The parameters of a path with names in braces."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": each, "in": "path", "required": True, "schema": {"type": "string"}} for each in names]


def responses(schema: Schema) -> dict[str, Any]:
    """The answers to a request."""
    good = {"description": "Found.", "content": {"application/json": {"schema": schema}}}
    return {"200": good} | {status: refusal(text) for status, text in REFUSALS.items()}


def refusal(text: str) -> dict[str, Any]:
    """An answer that is an error."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": text, "content": content}
