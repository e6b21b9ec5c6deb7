"""One Apache Kafka node, the same that golden bytes come from, as the Java peer of the produce and fetch
benches.

Prints ``ready port=N`` and ends when standard input closes. The node is a child process, so the core and CPU
time of this process include the node.
"""

from __future__ import annotations

import sys

from contrib.capture.kafka_node import kafka_node


def main() -> None:
    with kafka_node() as node:
        print(f"kafka {node.version} ready port={node.port}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
