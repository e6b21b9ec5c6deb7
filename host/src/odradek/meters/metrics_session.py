"""The session with which OpenTelemetry's exporter pushes metrics.

The exporter takes every answer below 400 for success, waits for a slow one without limit, and does not read
what it says. Requests go through `odradek.endpoints.http_exchange` instead, and answers are judged here.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from requests import PreparedRequest, RequestException, Response, Session, Timeout
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from odradek.endpoints.http_answer import WEB_PAGE, HttpAnswer
from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.endpoints.tls_context import default_context
from odradek.meters.metrics_settings import ENDPOINT

MAX_ANSWER_BYTES: Final = 1 << 16
PROTOBUF: Final = "application/x-protobuf"


def session() -> Session:
    """A session for `OTLPMetricExporter`."""
    made = Session()
    for scheme in ("http://", "https://"):
        made.mount(scheme, CheckedAdapter())
    return made


class CheckedAdapter(BaseAdapter):
    """Sends each request by `exchange`, and raises unless the answer is OTLP's success."""

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request; the proxies are those of the environment.

        Raises:
            Timeout: There is no answer in time, or none at all: the exporter sends again.
            RequestException: The answer is none of a collector, or says that points were refused.
        """
        url = request.url or ""
        body = request.body or b""
        assert isinstance(body, bytes), "the exporter sends bytes"
        try:
            answer = exchange(
                url,
                timeout_s=timeout,
                max_bytes=MAX_ANSWER_BYTES,
                body=body,
                headers={name: str(value) for name, value in request.headers.items()},
                tls=context_of(verify, cert) if url.startswith("https") else None,
            )
        except NoAnswer as error:
            raise Timeout(str(error)) from error
        check(answer)
        response = Response()
        response.status_code, response.reason, response.url = answer.status, f"HTTP {answer.status}", url
        response.headers = CaseInsensitiveDict(answer.headers)
        response.raw, response.request = BytesIO(answer.body), request
        return response

    def close(self) -> None:
        """Nothing stays open."""


def context_of(verify: bool | str, cert: Any) -> ssl.SSLContext:
    """The context that the exporter's variables of the environment ask for; CAs are those of `requests`."""
    path = Path(verify if isinstance(verify, str) else DEFAULT_CA_BUNDLE_PATH)
    context = default_context(cafile=None if path.is_dir() else path)
    if path.is_dir():
        context.load_verify_locations(capath=path)
    if cert:
        context.load_cert_chain(*([cert] if isinstance(cert, str) else cert))
    return context


def check(answer: HttpAnswer) -> None:
    """Refuse answers that the exporter would take for success.

    Raises:
        RequestException: It is a redirect or a web page, or points were refused.
    """
    if answer.is_redirect:
        raise RequestException(f"HTTP {answer.status}: {answer.new_place}; correct {ENDPOINT}")
    if not answer.is_success or not answer.body:
        return
    if answer.content_type == WEB_PAGE:
        raise RequestException(f"HTTP {answer.status}: the answer is {WEB_PAGE}; correct {ENDPOINT}")
    if answer.content_type != PROTOBUF:
        return
    try:
        partial = ExportMetricsServiceResponse.FromString(answer.body).partial_success
    except DecodeError as error:
        raise RequestException(f"HTTP {answer.status}: the answer is not OTLP; correct {ENDPOINT}") from error
    if partial.rejected_data_points:
        refused = f"{partial.rejected_data_points} points were refused: {partial.error_message[:200]}"
        raise RequestException(refused)
