"""A plugin that decides by rules in a file, such as one in git: who may do what with which topics.

Run it: ``python examples/10_authorize_by_file.py`` (needs ``odradek[demo]``). Takes a second.
"""

from __future__ import annotations

import secrets
import tempfile
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from confluent_kafka import Producer

from odradek import testing
from odradek.plugin import AclOperation, Action, Decision, PluginConfig, RequestContext, hookimpl
from odradek.plugin import ResourceType as Kind


class RulesPlugin:
    """Allows what a rule allows, to see such a topic, and all groups. The rest is for super users."""

    @hookimpl
    def odradek_authorizer(self, config: PluginConfig) -> RulesPlugin | None:
        file = config.file("file")
        self.rules: dict[str, dict[str, list[str]]] = tomllib.loads(file.read_text("utf-8")) if file else {}
        return self if file else None

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        own = self.rules.get(context.connection.principal.removeprefix("User:"), {})
        return [Decision(each.resource_type is Kind.GROUP or allows(own, each), "rules") for each in actions]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: Kind
    ) -> Decision:
        own = self.rules.get(context.connection.principal.removeprefix("User:"), {})
        return Decision(resource_type is Kind.TOPIC and operation.name.lower() in own, "rules")


def allows(own: dict[str, list[str]], asked: Action) -> bool:
    operations = own if asked.operation is AclOperation.DESCRIBE else [asked.operation.name.lower()]
    patterns = [pattern for each in operations for pattern in own.get(each, ())]
    return asked.resource_type is Kind.TOPIC and any(fnmatchcase(asked.name, each) for each in patterns)


if __name__ == "__main__":
    file = Path(tempfile.mkdtemp(prefix="odradek-example-")) / "rules.toml"
    file.write_text('[billing]\nwrite = ["billing.*"]\n[auditor]\nread = ["*"]', encoding="utf-8")
    users = {name: secrets.token_urlsafe() for name in ("billing", "auditor")}
    plugins = {RulesPlugin: {"file": str(file)}}
    with testing.host(plugins=plugins, users=users, authorizer_class_name="rules") as host:
        for topic in ("billing.invoices", "payroll"):
            host.topics.create(topic)
            for user in users:
                producer = Producer(host.client(user) | {"log_level": 2})
                print(user, "to", topic, end=": ")
                producer.produce(topic, b"1", on_delivery=lambda error, _: print(error or "written"))
                producer.flush(5)
