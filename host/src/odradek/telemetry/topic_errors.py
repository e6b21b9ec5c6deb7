"""Errors of topics in responses, sorted by what a client makes of them.

A client is refused what it would be refused again: too large a message, a missing right. It tries again
after all other errors. A topic that is not known may be created in the next moment, so a few such answers are
usual.
"""

from __future__ import annotations

from typing import Final

from odradek.findings.incidents import TOPIC_ERRORS, TOPIC_REFUSALS, UNKNOWN_TOPICS
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.incidents import Incidents
from odradek.wire.api_names import api_name
from odradek.wire.error_code import RETRIABLE, ErrorCode, error_name

SUCCESS: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
RESOLVED: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
"""Not retriable by their class, but idempotent producers get over them."""


def note_topic_error(
    incidents: Incidents, key: ClientKey, api_key: int, code: int, topic: str, connection_id: str = ""
) -> None:
    """Count the error of a topic or a partition.

    Args:
        incidents: Count it.
        key: The client that was answered.
        api_key: The API of the response.
        code: The error code; 0 is not counted.
        topic: The name of the topic; its id as text if the name is not known.
        connection_id: See `Incidents.add`.
    """
    if code in SUCCESS:
        return
    labels = {"api": api_name(api_key), "topic": topic}
    metric = UNKNOWN_TOPICS
    if code not in UNKNOWN:
        labels["error"] = error_name(code)
        metric = TOPIC_ERRORS if code in RETRIABLE or code in RESOLVED else TOPIC_REFUSALS
    incidents.add(key, metric, labels, connection_id=connection_id)
