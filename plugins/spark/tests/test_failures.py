"""Short messages for Spark's long errors."""

from __future__ import annotations

import pytest

from odradek_spark.ingest.failures import explain

STREAM = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in y\n    raise\n'


@pytest.mark.parametrize(
    ("text", "message", "is_passing"),
    [
        (
            f"{TRACEBACK}odradek_spark.source.topic.TopicError: topic t: unknown\n SQLSTATE: 38000",
            "topic t: unknown",
            False,
        ),
        (
            f"{TRACEBACK}odradek_spark.source.topic.Unreachable: b:1: no answer SQLSTATE: 38000",
            "b:1: no answer",
            True,
        ),
        (f"{TRACEBACK}OSError: [Errno 28] No space left", "OSError: [Errno 28] No space left", True),
        (
            f"{TRACEBACK}PermissionError: [Errno 13] denied: '/x'",
            "PermissionError: [Errno 13] denied: '/x'",
            False,
        ),
        (
            f"{STREAM}Job aborted due to stage failure: worker exited SQLSTATE: XXKST\n=== more ===",
            "Job aborted due to stage failure: worker exited",
            True,
        ),
        ("something else\nand more", "something else", True),
    ],
)
def test_the_last_cause_counts(text: str, message: str, is_passing: bool) -> None:
    failure = explain(RuntimeError(text), "/c")

    assert (failure.message, failure.is_passing) == (message, is_passing)


@pytest.mark.parametrize(
    "text",
    [
        "Failed to read log file file:/c/offsets/0. [MALFORMED_LOG_FILE] Log file was malformed",
        "Incomplete log file in the offset log",
        "JsonParseException: (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)",
    ],
)
def test_the_advice_for_a_damaged_checkpoint_is_to_delete_it(text: str) -> None:
    failure = explain(RuntimeError(STREAM + text), "/c")

    assert failure.message.startswith("the checkpoint /c is damaged: delete that folder and start again.")
    assert not failure.is_passing


def test_an_error_without_a_message_is_handled() -> None:
    failure = explain(RuntimeError(), "/c")

    assert failure.message == "RuntimeError"


@pytest.mark.parametrize(
    "text",
    [
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected",
        "ConcurrentModificationException: Multiple streaming queries are concurrently using /c/metadata\n"
        "\tat org.apache.spark.sql.execution.streaming.checkpointing.StreamMetadata$.write",
    ],
)
def test_a_checkpoint_used_twice_is_not_called_damaged(text: str) -> None:
    failure = explain(RuntimeError(STREAM + text), "/c")

    assert failure.message.startswith("another ingester uses the checkpoint /c: stop it")
    assert not failure.is_passing
