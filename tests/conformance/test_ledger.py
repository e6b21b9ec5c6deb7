"""The ledger agrees with the routing table, every row has a proof, and its page is up to date."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import odradek.wire.messages
from odradek.broker.dispatch.routes import Routes
from odradek.broker.dispatch.served import SERVED
from support.coverage_page import ROOT, Row, load_ledger, sections
from support.offenders import offenders

ROWS, ABSENCES = load_ledger()
ROUTES = Routes()
LAST_KEY = 94
"""UnregisterController: the highest API key of Kafka 4.4."""


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the test functions in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def declared() -> dict[int, str]:
    """The API name of every request declared in ``wire/messages``, by key."""
    found: dict[int, str] = {}
    for module in pkgutil.iter_modules(odradek.wire.messages.__path__):
        for name, item in vars(importlib.import_module(f"odradek.wire.messages.{module.name}")).items():
            if name.endswith("Request") and hasattr(item, "API_KEY"):
                found[item.API_KEY] = name.removesuffix("Request")
    return found


def versions(rows: list[Row]) -> list[int]:
    """All versions of these rows in order, repeated where rows overlap."""
    return sorted(version for row in rows for version in range(row.first, row.last + 1))


def test_the_ledger_has_exactly_the_routes() -> None:
    assert {(row.key, row.api) for row in ROWS} == {(key, declared()[key]) for key in ROUTES}


@pytest.mark.parametrize("key", sorted(ROUTES))
def test_ledger_versions_are_the_versions_of_the_route(key: int) -> None:
    rows, route = [row for row in ROWS if row.key == key], ROUTES[key]

    supported = versions([row for row in rows if row.status == "supported"])

    assert supported == list(range(route.versions.first, route.versions.last + 1))
    assert versions(rows) == list(range(SERVED[key].first, SERVED[key].last + 1))


def is_whole(row: Row) -> None:
    assert row.status in ("supported", "refused")
    assert row.says.endswith(".")
    assert row.proof


def test_a_row_has_a_status_an_explanation_and_a_proof() -> None:
    assert offenders(is_whole, ROWS) == {}


def is_a_test_that_exists(proof: str) -> None:
    file, separator, name = proof.partition("::")

    assert separator, "a proof is file::name"
    assert name in names_in(file)


def test_a_proof_is_a_test_that_exists() -> None:
    assert offenders(is_a_test_that_exists, sorted({proof for row in ROWS for proof in row.proof})) == {}


def test_every_api_of_kafka_is_served_or_listed_as_absent() -> None:
    absent = [key for absence in ABSENCES for key in absence.apis.values()]

    said = Counter([*ROUTES, *absent])

    assert said == Counter(range(LAST_KEY + 1))


def test_absent_apis_have_kafkas_names() -> None:
    names = declared()

    wrong = [
        (name, key)
        for absence in ABSENCES
        for name, key in absence.apis.items()
        if names.get(key, name) != name
    ]

    assert wrong == []


def has_a_documented_handler(row: Row) -> None:
    route = ROUTES[row.key]

    assert Path(sys.modules[route.handler.__module__].__file__ or "") == row.handler
    assert sections(row.handler)["Behavior"].items


def test_every_row_has_a_handler_that_documents_its_behavior() -> None:
    assert offenders(has_a_documented_handler, ROWS) == {}


@pytest.mark.ci
def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, "-m", "contrib.docs.protocol_coverage", "--check"]

    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)

    assert (checked.returncode, checked.stderr) == (0, "")
