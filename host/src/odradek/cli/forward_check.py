"""``forward --check``: what a start of these forwarders would find, in the file and in the cluster."""

from __future__ import annotations

from odradek.cli.check_report import TIMEOUT_MS, CheckReport, check_disk, identity
from odradek.cli.forward_run import TOTALS_SUFFIX, ForwardRun
from odradek.client.admin import AdminClient
from odradek.client.changelog import CONFIGS
from odradek.client.errors import RequestFailed
from odradek.client.resources import NewTopic
from odradek.client.rights import may_join, topic_operations
from odradek.hosting.active_plugin import PluginState
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.config import ConfigError
from odradek.programs.config_check import check_outlets, checked_plugins
from odradek.programs.forward import NOTHING_TO_RUN, forwarders_of
from odradek.temporality import KeepsTotals
from odradek.wire.error_code import ErrorCode

READ, WRITE = AclOperation.READ, AclOperation.WRITE


def check_forward(made: ForwardRun) -> CheckReport:
    """Check forwarders without starting them.

    Raises:
        ConfigError: A start would refuse a plugin or its table, or there is nothing to run.
    """
    report, letters = CheckReport(), made.letters
    groups: list[str] = []
    totals: list[NewTopic] = []
    report.means("reads", f"topic {made.topic} of {made.bootstrap_server}, as {identity(made.connection)}")
    check_outlets(made.config)
    with checked_plugins(made.config) as (plugins, receivers):
        for name, forwarder, _ in forwarders_of(plugins, receivers):
            groups.append(f"{made.group}.{name}")
            if isinstance(forwarder, KeepsTotals):
                settings = forwarder.settings
                if settings.file is not None:
                    check_disk(report, settings.file_key, settings.file.parent)
                else:
                    topic = settings.topic or groups[-1] + TOTALS_SUFFIX
                    totals.append(NewTopic(name=topic, partitions=1, configs=CONFIGS))
        for each in plugins:
            if each.state is PluginState.BROKEN:
                report.fail(f"plugin {each.name} is broken: {each.installed.problem}")
    if not groups:
        raise ConfigError("plugins", NOTHING_TO_RUN)
    report.means("groups", ", ".join(groups))
    report.means("begins", f"at the {made.offset_reset} record where a group has no offset")
    report.means("gives up", f"a record that a destination refuses, to the topic {letters.name}")
    report.means("totals", f"in {', '.join(each.name for each in totals)}" if totals else "in no topic")
    check_cluster(report, made, groups, [letters, *totals])
    if totals:
        report.unknown.append("Write on the transactional ids of the totals, which begin with their topic")
    report.unknown.append("whether the destinations of plugins answer, and take what they are sent")
    return report


def check_cluster(report: CheckReport, made: ForwardRun, groups: list[str], written: list[NewTopic]) -> None:
    """Check that the cluster answers, and has the topics and the rights."""
    with made.connection.admin(made.bootstrap_server, TIMEOUT_MS) as admin, report.attempt():
        found = admin.metadata([])
        report.ok(f"cluster {found.cluster_id} answers; brokers: {len(found.brokers)}")
        check_topics(report, admin, made.topic, written)
        for group in groups:
            with report.attempt(group):
                if may_join(admin.cluster, group):
                    report.ok(f"the group {group} can be joined")
                else:
                    report.fail(f"needs the right READ on the group {group}")
        return
    report.unknown.append("topics, groups and rights: no broker has answered")


def check_topics(report: CheckReport, admin: AdminClient, source: str, written: list[NewTopic]) -> None:
    """Check that the topic can be read, and that the others can be written or created.

    Raises:
        ClientError: No broker answers.
    """
    found = topic_operations(admin.cluster, [source, *(each.name for each in written)])
    allowed = found[source]
    if isinstance(allowed, RequestFailed):
        report.fail(f"topic {allowed}")
    elif READ not in allowed:
        report.fail(f"needs the right READ on the topic {source}")
    else:
        report.ok(f"topic {source} can be read")
    for each in written:
        allowed = found[each.name]
        if isinstance(allowed, RequestFailed) and allowed.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            with report.attempt(f"topic {each.name} is missing and cannot be created"):
                admin.create_topics([each], validate_only=True)
                report.ok(f"topic {each.name} can be created")
        elif isinstance(allowed, RequestFailed):
            report.fail(f"topic {allowed}; needs the right WRITE on it")
        elif WRITE not in allowed:
            report.fail(f"needs the right WRITE on the topic {each.name}")
        else:
            report.ok(f"topic {each.name} can be written")
