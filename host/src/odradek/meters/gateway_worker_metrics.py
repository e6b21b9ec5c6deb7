"""The metrics of a gateway's workers; `Workers.metric_rows` has their values."""

from __future__ import annotations

from odradek.meters.instrument import Instrument

GATEWAY_WORKER_INSTRUMENTS = {
    "gateway-workers": Instrument(
        "odradek.gateway.workers", "gauge", "{process}", "Workers that serve clients"
    ),
    "gateway-former-workers": Instrument(
        "odradek.gateway.former.workers",
        "gauge",
        "{process}",
        "Processes that deliver what a worker has left that `gateway.workers` does not have any more",
    ),
    "gateway-worker-restarts": Instrument(
        "odradek.gateway.worker.restarts", "counter", "{start}", "Starts of a worker that had ended by itself"
    ),
}
