"""Ask Apache Kafka with its StandardAuthorizer the requests of `support.authorization.cases`.

    PYTHONPATH=tests python -m contrib.capture.authorization [--kafka VERSION]    # from the root

Writes ``tests/conformance/authorization_golden.json``: the answer to each case, with names in place of topic
ids. Each case has a user of its own, who authenticates with PLAIN on a second listener. Callers on the first
listener are super users.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from contrib.capture.kafka_node import NEWEST, kafka_node
from contrib.capture.ports import free_port

from odradek.client.connection import Connection, answer_type
from odradek.client.sasl import SaslLogin
from odradek.wire.codec import decode
from odradek.wire.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.wire.messages.metadata import MetadataRequest
from support.authorization.case import NOWHERE, Case, plain
from support.authorization.cases import CASES
from support.authorization.world import WORLD
from support.grants import grant

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "conformance" / "authorization_golden.json"
ALLOW, LITERAL = 3, 3
BETWEEN_ATTEMPTS_S = 0.02
"""A node refuses requests while it loads its coordinators."""
SETTLED_S = 1.0
"""Kafka answers before its authorizer has applied a change."""


def overrides(port: int) -> list[str]:
    """The settings of a node with a listener for the users of the cases."""
    users = " ".join(f'user_{user_of(number)}="secret"' for number in range(len(CASES)))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return [
        f"listener.name.limited.plain.sasl.jaas.config={module} required {users};",
        "listener.name.limited.sasl.enabled.mechanisms=PLAIN",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LIMITED:SASL_PLAINTEXT",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},LIMITED://127.0.0.1:{port}",
        f"listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},LIMITED://127.0.0.1:{port}",
    ]


def user_of(number: int) -> str:
    return f"user{number}"


def acls() -> list[AclCreation]:
    """The rights of all cases."""
    found = []
    for number, case in enumerate(CASES):
        for text in case.grants:
            operation, resource_type, name = grant(text)
            found.append(
                AclCreation(
                    resource_type=resource_type,
                    resource_name=name,
                    resource_pattern_type=LITERAL,
                    principal=f"User:{user_of(number)}",
                    host="*",
                    operation=operation,
                    permission_type=ALLOW,
                )
            )
    return found


def answered(number: int, case: Case, port: int, ids: dict[str, bytes]) -> Any:
    """Kafka's answer to one case."""
    login = SaslLogin("PLAIN", user_of(number), "secret")
    with Connection("127.0.0.1", port, timeout_s=10, login=login) as connection:
        request = case.ask(ids)
        version = connection.version(request) if case.version is None else case.version
        while True:
            body = connection.exchange(request, version)
            answer = decode(answer_type(type(request)), version, body)
            request = case.again(answer)
            if request is None:
                return plain(answer, ids, case)
            time.sleep(SETTLED_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default=NEWEST)
    chosen = parser.parse_args()
    port = free_port()
    with kafka_node(overrides=overrides(port), kafka=chosen.kafka) as node:
        with Connection("127.0.0.1", node.port) as admin:

            def send(*arguments: Any, **keywords: Any) -> Any:
                time.sleep(BETWEEN_ATTEMPTS_S)
                return admin.send(*arguments, **keywords)

            for make in WORLD:
                make(send)
                time.sleep(0.3)
            admin.send(CreateAclsRequest(creations=acls()))
            topics = admin.send(MetadataRequest(topics=None)).topics
        time.sleep(SETTLED_S)
        ids = {topic.name: topic.topic_id for topic in topics} | {"gone": NOWHERE}
        found = {case.name: answered(number, case, port, ids) for number, case in enumerate(CASES)}
    GOLDEN.write_text(
        json.dumps({"kafka": node.version, "answers": found}, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
