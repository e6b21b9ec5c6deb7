"""Every block of every how-to is run in order, in a fresh directory, or says why it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.page_follower import Block, PageFollower, blocks_of, needs_spark, run_by
from support.reference_page import DOCS, ROOT

PAGES = [f"howto/{path.name}" for path in sorted((DOCS / "howto").glob("*.md"))]
FOLLOWED = [
    name for name in PAGES if not run_by(name) and any(not block.not_run for block in blocks_of(name))
]
NOT_RUN = [
    pytest.param(block, id=f"{name}:{block.line}")
    for name in PAGES
    for block in blocks_of(name)
    if block.not_run and not run_by(name)
]

OF_MINUTES = [pytest.mark.spark, pytest.mark.nightly]


@pytest.mark.parametrize("name", PAGES)
def test_each_block_says_what_to_do_with_it(name: str) -> None:
    if run_by(name):
        assert name in (ROOT / run_by(name)).read_text(encoding="utf-8")
    else:
        assert [f"{name}:{block.line}" for block in blocks_of(name) if not block.is_clear] == []


@pytest.mark.parametrize("block", NOT_RUN)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert len(block.not_run.split()) > 1
    pytest.skip(f"not run: {block.not_run}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=OF_MINUTES if needs_spark(name) else pytest.mark.slow) for name in FOLLOWED],
)
def test_every_block_works_in_order(name: str, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    if needs_spark(name):
        pytest.importorskip("pyspark")

    with PageFollower(tmp_path) as follower:
        for block in blocks_of(name):
            if not block.not_run:
                follower.follow(block)
