"""Rules of anomalies, from TOML."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.findings.client_metrics import client_metrics
from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import SILENCE, TROUBLES, Trouble
from odradek.testing.pushes import recorded, recorded_clients
from odradek_spark.jobs.rules import Aggregate, Op, Rule, RuleError, combined, default_rules, parse_rules

PLAIN = 'id = "slow"\nmetric = "m"\nop = ">"\nthreshold = 500\n'


def test_a_rule_defines_an_anomaly() -> None:
    (rule,) = parse_rules(f'[[rule]]\n{PLAIN}for_s = 60\nagg = "max"\nattrs = {{ topic = "orders" }}')

    assert rule == Rule(
        id="slow",
        metric="m",
        op=Op.ABOVE,
        threshold=500.0,
        for_s=60.0,
        attrs={"topic": "orders"},
        agg=Aggregate.MAX,
    )


def test_a_rule_lasts_180_seconds_by_default() -> None:
    (rule,) = parse_rules(f"[[rule]]\n{PLAIN}")

    assert (rule.for_s, rule.agg, rule.attrs) == (180.0, Aggregate.EACH, {})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"expected tables \[\[rule\]\]"),
        ("[[", "not TOML"),
        ("rule = 3", r"expected tables \[\[rule\]\]"),
        (f"[[rule]]\n{PLAIN}[other]", r"expected tables \[\[rule\]\]"),
        ('[[rule]]\nid = "x"', "rule 'x': metric is missing"),
        ("[[rule]]", "rule 1: id is missing"),
        (f"[[rule]]\n{PLAIN}for = 3", "rule 'slow': for: unknown key"),
        (f"[[rule]]\n{PLAIN}for_s = -1", "for_s: expected a number from 0.*, found -1"),
        (f"[[rule]]\n{PLAIN}for_s = true", "for_s: expected a number from 0.*, found True"),
        (f"[[rule]]\n{PLAIN}for_s = nan", "for_s: expected a number from 0.*, found nan"),
        (f"[[rule]]\n{PLAIN}agg = 'p99'", "agg: expected one of each, sum, min, max, avg, found 'p99'"),
        (f"[[rule]]\n{PLAIN}attrs = 'a'", "attrs: expected a table of strings"),
        (f"[[rule]]\n{PLAIN}attrs = {{ a = 1 }}", "attrs.a: expected a string, found 1"),
        ('[[rule]]\nid = "x"\nmetric = ""\nop = ">"\nthreshold = 1', "rule 'x': metric is missing"),
        (
            '[[rule]]\nid = "x"\nmetric = "m"\nop = "="\nthreshold = 1',
            "op: expected one of >, >=, <, <=, found '='",
        ),
        (f"[[rule]]\n{PLAIN}[[rule]]\n{PLAIN}", "two rules have the id 'slow'"),
        (f"[[rule]]\n{PLAIN}clear = 501", "clear: expected no more than the threshold, found 501"),
        (f"[[rule]]\n{PLAIN}over_s = -1", "over_s: expected a number from 0.*, found -1"),
        (f"[[rule]]\n{PLAIN}per = 3", "per: expected a string, found 3"),
    ],
)
def test_invalid_rules_are_named(text: str, complaint: str) -> None:
    with pytest.raises(RuleError, match=complaint):
        parse_rules(text)


def test_own_rules_replace_default_rules_with_the_same_id() -> None:
    own = Rule(id="retries", metric="m", op=Op.ABOVE, threshold=1.0)

    found = combined(default_rules(), [own])

    assert [each for each in found if each.id == "retries"] == [own]
    assert len(found) == len(default_rules())


def kinds(software: str) -> dict[str, str]:
    """The kind of each metric that recorded clients of a software sent."""
    start = "java" if software == "apache-kafka-java" else software
    return {
        metric.name: str(metric.WhichOneof("data"))
        for client in recorded_clients()
        if client.startswith(start)
        for push in recorded(client)
        for entry in MetricsData.FromString(push.data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    }


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda each: each.id)
def test_the_metrics_of_a_trouble_are_sent_by_its_software(trouble: Trouble) -> None:
    for software, metric in trouble.metrics.items():
        sent = kinds(software)
        if metric.startswith(OBSERVED):
            sent = {metric: client_metrics()[metric].kind}  # the host or a gateway sees it
        wanted = "sum" if trouble.over_s else "gauge"
        assert metric == SILENCE or sent[metric] == wanted
        assert not trouble.per or sent[trouble.per] == wanted


def test_the_ids_of_troubles_differ() -> None:
    assert len({each.id for each in TROUBLES}) == len(TROUBLES)
