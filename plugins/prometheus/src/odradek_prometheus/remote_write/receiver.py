"""One receiver of remote write: sends batches of samples, and reads its answers."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import snappy

from odradek.endpoints import Credentials, Misdirected, Unauthorized, titled, with_credentials
from odradek.endpoints.http_answer import WEB_PAGE, HttpAnswer, retry_after_s
from odradek.endpoints.http_client import HttpClient
from odradek.plugin import Retry
from odradek_prometheus.families import Family
from odradek_prometheus.remote_write.answers import (
    AGAIN,
    BAD_REQUEST,
    TOO_LARGE,
    UNAUTHORIZED,
    UNSUPPORTED,
    WRONG_ADDRESS,
    Reason,
    reasons_of,
    written,
)
from odradek_prometheus.remote_write.native import LEAST_SCHEMA
from odradek_prometheus.remote_write.request_v1 import request_v1
from odradek_prometheus.remote_write.request_v2 import request_v2
from odradek_prometheus.remote_write.sample import Sample

log = logging.getLogger(__name__)

V1: Final = {
    "content-type": "application/x-protobuf",
    "x-prometheus-remote-write-version": "0.1.0",
}
V2: Final = {
    "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
    "x-prometheus-remote-write-version": "2.0.0",
}
METADATA_MS: Final = 60_000
"""1.0 has no metadata in its series: each family is described again after so long, as Prometheus does."""
REPORT_S: Final = 60.0
MAX_PARTS: Final = 64
"""Requests that one batch may become, when the receiver refuses it as a whole."""


@dataclass(slots=True)
class Counts:
    """Totals since the start."""

    requests: int = 0
    samples: int = 0
    """Sent and answered, stored or not."""
    rejected: Counter[str] = field(default_factory=Counter)
    raw_bytes: int = 0
    sent_bytes: int = 0
    """Compressed."""


class Receiver:
    """Sends samples. Several calls of `write` may be in flight."""

    def __init__(self, client: HttpClient, credentials: Credentials, protocol: str) -> None:
        """Prepare.

        Args:
            client: For the address.
            credentials: The headers of each request.
            protocol: ``1.0``, ``2.0``, or ``auto`` for 2.0 until the receiver refuses it.
        """
        self.client = client
        self.credentials = credentials
        self.protocol = protocol
        self.is_v2 = protocol != "1.0"
        self.counts = Counts()
        self.described_ms: dict[str, int] = {}
        self.unreported: Counter[str] = Counter()
        self.reported_s = -REPORT_S

    async def write(self, samples: Sequence[Sample]) -> None:
        """Send samples, in one request unless the receiver refuses that as a whole.

        Raises:
            Retry: The receiver is unreachable, or cannot accept the samples now.
        """
        waiting, sent = [samples], 0
        while waiting:
            part = waiting.pop()
            is_v2 = self.is_v2
            answer = await self.exchange(part, is_v2)
            sent += 1
            if is_v2 and self.is_not_understood(answer):
                self.fall_back(answer)
                waiting.append(part)
            elif len(part) > 1 and sent + len(waiting) < MAX_PARTS and is_refused_whole(answer, is_v2):
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
            else:
                self.note(part, answer)

    async def exchange(self, samples: Sequence[Sample], is_v2: bool) -> HttpAnswer:
        """Send one request."""
        body = request_v2(samples) if is_v2 else request_v1(samples, self.undescribed(samples))
        packed = snappy.compress(body)
        version = V2 if is_v2 else V1
        answer = await with_credentials(
            self.credentials,
            lambda headers: self.checked_post(packed, {**headers, **version, "content-encoding": "snappy"}),
        )
        self.counts.requests += 1
        self.counts.raw_bytes += len(body)
        self.counts.sent_bytes += len(packed)
        return answer

    async def checked_post(self, body: bytes, headers: dict[str, str]) -> HttpAnswer:
        """Post a body.

        Raises:
            Retry: It should be sent again; `Unauthorized`, `Misdirected`: once an operator has mended it.
        """
        answer = await self.client.post(body, headers)
        status, title = answer.status, f"HTTP {answer.status}"
        after_s = retry_after_s(answer.headers.get("Retry-After"), time.time())
        if answer.is_redirect:
            raise Misdirected(titled(title, answer.new_place))
        if status in UNAUTHORIZED:
            raise Unauthorized(titled(title, answer.text), after_s)
        if status in WRONG_ADDRESS or (answer.is_success and answer.content_type == WEB_PAGE):
            raise Misdirected(titled(title, answer.text))
        if status >= 500 or status in AGAIN:
            raise Retry(titled(title, answer.text), after_s)
        return answer

    def is_not_understood(self, answer: HttpAnswer) -> bool:
        """Whether a request of 2.0 was not read: receivers of 1.0 may accept it as one without series."""
        if answer.status == UNSUPPORTED:
            return True
        return answer.is_success and written(answer.headers) is None

    def fall_back(self, answer: HttpAnswer) -> None:
        """Use 1.0 from now on.

        Raises:
            Misdirected: Only 2.0 is allowed.
        """
        if self.protocol == "2.0":
            raise Misdirected(f"HTTP {answer.status}: the receiver does not take remote write 2.0")
        if self.is_v2:
            log.warning(
                "the receiver does not take remote write 2.0, using 1.0: without start times",
                extra={"target": self.client.target.url, "status": answer.status},
            )
        self.is_v2 = False

    def undescribed(self, samples: Sequence[Sample]) -> list[Family]:
        """Families that were not described recently."""
        now_ms = time.monotonic_ns() // 1_000_000
        found: dict[str, Family] = {}
        for sample in samples:
            family = sample.family
            if now_ms - self.described_ms.get(family.name, -METADATA_MS) >= METADATA_MS:
                self.described_ms[family.name] = now_ms
                found[family.name] = family
        return list(found.values())

    def note(self, samples: Sequence[Sample], answer: HttpAnswer) -> None:
        """Count the samples of a request that is settled."""
        sent = sum([2 if sample.zero_ms else 1 for sample in samples])
        self.counts.samples += sent
        counted = written(answer.headers)
        stored = sent if answer.is_success else 0
        if counted is not None:
            stored = min(sent, counted.samples + counted.histograms)
        if stored == sent:
            return
        reasons: Counter[str] = (
            Counter({Reason.TOO_LARGE: sent})
            if answer.status == TOO_LARGE
            else reasons_of(answer.text, sent - stored)
        )
        self.report(reasons, answer.status, answer.text)

    def leave_out(self, histograms: int) -> None:
        """Count exponential histograms that cannot be sent, because Prometheus has no such wide buckets."""
        self.report(Counter({Reason.TOO_WIDE: histograms}), problem=f"a scale below {LEAST_SCHEMA}")

    def report(self, reasons: Counter[str], status: int = 0, problem: str = "") -> None:
        """Count samples that were not stored, and log them once a minute."""
        self.counts.rejected.update(reasons)
        self.unreported.update(reasons)
        if time.monotonic() - self.reported_s < REPORT_S:
            return
        log.log(
            logging.ERROR if Reason.LABELS in self.unreported else logging.WARNING,
            "the receiver did not store all samples; they are not sent again",
            extra={
                "target": self.client.target.url,
                "status": status,
                "reasons": {str(reason): count for reason, count in self.unreported.items()},
                "problem": problem[:500],
            },
        )
        self.reported_s = time.monotonic()
        self.unreported.clear()


def is_refused_whole(answer: HttpAnswer, is_v2: bool) -> bool:
    """Whether parts of a refused request may be accepted.

    Of a request of 1.0 with a bad sample, Prometheus stores nothing.
    """
    return answer.status == TOO_LARGE or (answer.status == BAD_REQUEST and not is_v2)
