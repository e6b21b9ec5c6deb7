"""A plugin that decides by rules in a file, such as one in git: who may do what with which topics.

Run it: ``python examples/10_authorize_by_file.py`` (needs ``odradek``).

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    rules = "my_package"

and configure it::

    "authorizer.class.name" = "rules"
    "super.users" = "User:admin"

    [plugins.rules]
    file = "rules.toml"
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from odradek.hosting.active_plugin import activate
from odradek.hosting.authorizers import chosen_authorizer
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import (
    AclOperation,
    Action,
    ConfigError,
    Decision,
    PluginConfig,
    RequestContext,
    ResourceType,
    hookimpl,
)
from odradek.programs.config import parse
from odradek.testing import request_context
from odradek.testing.clock import MockClock

RULES = """\
[[rule]]
principal = "User:billing"
may = ["describe", "write"]
topics = ["billing.*"]

[[rule]]
principal = "User:auditor"
may = ["describe", "read"]
topics = ["*"]
"""


@dataclass(frozen=True)
class Rule:
    """Operations that a principal may perform on some topics."""

    principal: str
    operations: frozenset[AclOperation]
    topics: tuple[str, ...]

    def allows(self, principal: str, operation: AclOperation, topic: str) -> bool:
        fits = any(fnmatchcase(topic, pattern) for pattern in self.topics)
        return fits and principal == self.principal and operation in self.operations


class FileAuthorizer:
    """Allows what a rule allows. Everything else is for super users."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        return [self.decide(context.connection.principal, action) for action in actions]

    def decide(self, principal: str, action: Action) -> Decision:
        if action.resource_type is ResourceType.GROUP:
            return Decision(True, "every client may have groups")
        for number, rule in enumerate(self.rules, 1):
            if action.resource_type is ResourceType.TOPIC and rule.allows(
                principal, action.operation, action.name
            ):
                return Decision(True, f"rule {number}")
        return Decision(False, "no rule")

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """A producer without a transactional id asks whether it may write to any topic."""
        own = [rule for rule in self.rules if rule.principal == context.connection.principal]
        is_allowed = resource_type is ResourceType.TOPIC and any(operation in rule.operations for rule in own)
        return Decision(is_allowed, "any rule")


class RulesPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    @hookimpl
    def odradek_authorizer(self, config: PluginConfig) -> FileAuthorizer | None:
        """Read ``[plugins.rules]``. The host does not start with a rule that is wrong."""
        file = config.file("file")
        if file is None:
            return None
        try:
            tables = tomllib.loads(file.read_text())["rule"]
            return FileAuthorizer([read_rule(table) for table in tables])
        except (KeyError, ValueError) as error:
            raise ConfigError("plugins.rules.file", f"{file} has a wrong rule: {error}") from error


def read_rule(table: dict[str, object]) -> Rule:
    """One rule of the file."""
    operations, topics = table["may"], table["topics"]
    if not isinstance(operations, list) or not isinstance(topics, list):
        raise ValueError("expected lists of operations and topics")
    may = frozenset(AclOperation[str(name).upper()] for name in operations)
    return Rule(str(table["principal"]), may, tuple(map(str, topics)))


def main(file: Path) -> None:
    file.write_text(RULES)
    plugins = load_plugins()
    plugins.add("rules", RulesPlugin(), distribution="example", version="1.0")
    values = {"authorizer.class.name": "rules", "super.users": "User:admin", "plugins.rules.file": str(file)}
    config = parse(values, frozenset())
    authorizer = chosen_authorizer(config.authorizer, activate(plugins, config.plugins), MockClock())
    assert authorizer is not None

    for principal, operation, topic in (
        ("User:billing", AclOperation.WRITE, "billing.invoices"),
        ("User:billing", AclOperation.WRITE, "payroll"),
        ("User:auditor", AclOperation.READ, "payroll"),
        ("User:admin", AclOperation.WRITE, "payroll"),
    ):
        action = Action(operation, ResourceType.TOPIC, topic)
        (decision,) = authorizer.authorize(request_context(principal=principal), [action])
        verb = "write to" if operation is AclOperation.WRITE else "read"
        print(f"{principal} may {'' if decision.is_allowed else 'not '}{verb} {topic}: {decision.rule}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "rules.toml")
