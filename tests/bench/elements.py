"""The time that requests with the maximum number of array elements block the event loop.

The rows are the most expensive of all requests, and two that clients send.

Usage, from the folder above: ``python -m bench.elements``
"""

from __future__ import annotations

import sys
import time
from typing import Any

from bench.harness import head, spread
from odradek.server.plugins.process import freeze_garbage
from odradek.wire.codec import MAX_ELEMENTS, decode, encode
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

ROUNDS = 15
MOST = MAX_ELEMENTS - 1
"""In addition to the one topic that the rows of partitions have."""
REQUESTS: dict[str, Any] = {
    "CreateTopics, topics": CreateTopicsRequest(topics=[CreatableTopic()] * MOST),
    "AlterUserScramCredentials, upsertions": AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion()] * MOST
    ),
    "OffsetFetch, groups": OffsetFetchRequest(groups=[OffsetFetchRequestGroup()] * MOST),
    "Fetch, partitions": FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()] * MOST)]),
    "OffsetCommit, partitions": OffsetCommitRequest(
        topics=[OffsetCommitRequestTopic(partitions=[OffsetCommitRequestPartition()] * MOST)]
    ),
}


def read_ms(request: Any) -> float:
    """CPU milliseconds to decode a request once."""
    version = request.VERSIONS.last
    data = encode(request, version)
    started_s = time.process_time()
    decode(type(request), version, data)
    return (time.process_time() - started_s) * 1000


def main() -> None:
    print(head("elements"), file=sys.stderr)
    freeze_garbage()
    for name, request in REQUESTS.items():
        print(f"{name:40} {spread([read_ms(request) for _ in range(ROUNDS)])} ms")


if __name__ == "__main__":
    main()
