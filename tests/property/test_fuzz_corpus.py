"""The seeds of the fuzzers, and the inputs that they have found."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

from fuzz.__main__ import CORPUS, TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_no_known_input_is_a_finding(target: str) -> None:
    module: Any = importlib.import_module(f"fuzz.targets.{target}")
    inputs = [*module.seeds(), *(file.read_bytes() for file in sorted((CORPUS / target).glob("*")))]

    assert inputs
    for data in inputs:
        module.check(data)
    assert logging.getLogger("odradek").isEnabledFor(logging.WARNING), "later tests read the log"


def test_every_folder_of_the_corpus_has_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)
