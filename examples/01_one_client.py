"""One client, one push: runs a host and a real librdkafka producer, and prints the metrics that it pushes.

Run it: ``python examples/01_one_client.py`` (needs ``odradek[all]``). Takes seconds.
"""

from __future__ import annotations

from confluent_kafka import Producer

from odradek import testing


def main() -> None:
    with testing.host(plugins=["enrich"]) as host:
        host.subscribe("*", interval_ms=1000)

        # an unmodified client: it pushes because the broker asks it to
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 3})
        producer.produce("greetings", b"hello")
        producer.flush(5)
        points = host.telemetry.wait_for("org.apache.kafka.producer.*", timeout_s=20)
        connection = host.telemetry.pushes[-1].context.connection
        del producer

    print(f"my-app runs {connection.client_software_name} {connection.client_software_version}")
    print("labels:", ", ".join(f"{key}={value}" for key, value in sorted(points[0].resource.items())))
    for point in points:
        print(f"metric: {point.metric} {point.value:g}")


if __name__ == "__main__":
    main()
