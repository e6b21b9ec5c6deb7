"""One client, one push: runs a host and a real librdkafka producer, and prints the metrics that it pushes.

Run it: ``python examples/01_one_client.py`` (needs ``odradek[all]``). Takes a few seconds.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading

from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.programs.config import load_config
from odradek.programs.host import Host


class FirstPush:
    """A receiver that keeps the first push."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    def client_receiver(self) -> FirstPush:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if not self.arrived.is_set():
            self.context, self.payload = context, payload
            self.arrived.set()


def produce(bootstrap: str, done: threading.Event) -> None:
    """Run an unmodified client. It pushes because the broker requests it."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "my-app"})
    while not done.wait(0.1):
        producer.produce("greetings", value=b"hello")
        producer.poll(0)
    producer.flush(5)


async def main(data_dir: str) -> None:
    config = load_config(
        overrides=[
            f"data.dir={data_dir}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "subscriptions.everything.metrics=*",
            "subscriptions.everything.interval.ms=1000",
        ]
    )
    host = Host(config)
    first_push = FirstPush()
    host.receivers.register("first-push", first_push)
    await host.start()
    done = threading.Event()
    client = asyncio.create_task(
        asyncio.to_thread(produce, f"127.0.0.1:{host.listeners[0].bound_port}", done)
    )
    try:
        await asyncio.wait_for(first_push.arrived.wait(), 20)
    finally:
        done.set()
        await client
        await host.stop()
    report(first_push.context, first_push.payload)


def report(context: RequestContext, payload: ClientTelemetryPayload) -> None:
    """Print the client's software, its labels and the names of its metrics."""
    connection = context.connection
    print(f"{context.client_id} runs {connection.client_software_name} {connection.client_software_version}")
    for resource_metrics in MetricsData.FromString(payload.data).resource_metrics:
        labels = {item.key: item.value.string_value for item in resource_metrics.resource.attributes}
        print("labels:", ", ".join(f"{key}={value}" for key, value in sorted(labels.items())))
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                print("metric:", metric.name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
