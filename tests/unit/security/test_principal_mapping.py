"""User names from the subjects of certificates: the results that Apache Kafka 4.3.1 gave."""

from __future__ import annotations

import pytest

from odradek.security.principal_mapping import NoMatchingRule, parse_rules

ACME = "CN=bob,O=Acme"
BOB = "CN=Bob,O=Acme"


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        (r"RULE:^CN=(.*?),O=.*$/$1/", ACME, "bob"),
        (r"RULE:^CN=(.*?),O=.*$/$1/L", BOB, "bob"),
        (r"RULE:^CN=(.*?),O=.*$/$1/U", BOB, "BOB"),
        (r"RULE:^CN=(.*?),OU=X.*$/$1/,DEFAULT", BOB, BOB),
        (r"RULE:CN=(.*?),O=/$1/,DEFAULT", BOB, BOB),
        (r"RULE:^CN=(.*?),O=(.*)$/$1@$2/", BOB, "Bob@Acme"),
        (r"RULE:^CN=(.*?),O=(.*)$/$1@$3/", BOB, "Bob@$3"),
        (r"RULE:^CN=(.*?),O=(.*)$/$12/", BOB, "Bob2"),
        (r"RULE:^CN=(.*?),O=(.*)$/$0/", BOB, BOB),
        (r"RULE:^CN=(.*?)\/b$/$1/", "CN=a/b", "a"),
        (r"RULE:^CN=(.*?)$/$1/L, RULE:^.*$/all/", "CN=Bob", "bob"),
        (r"RULE:^.*$//", "CN=Bob", ""),
        (r"RULE:.*/x/", "CN=Bob", "xx"),
        (r"RULE:(.*)/[$1]/", "CN=Bob", "[CN=Bob][]"),
        (r"RULE:^CN=(.*?)$/\$1\/$1/", "CN=Bob", "$1/Bob"),
        ("DEFAULT", BOB, BOB),
        (" DEFAULT , RULE:x/y/ ", BOB, BOB),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules: str, subject: str, name: str) -> None:
    assert parse_rules(rules).name(subject) == name


@pytest.mark.parametrize("rules", [r"RULE:^CN=(.*?),OU=X.*$/$1/", ""])
def test_a_subject_that_no_rule_matches_has_no_name(rules: str) -> None:
    with pytest.raises(NoMatchingRule) as error:
        parse_rules(rules).name(BOB)

    assert str(error.value) == f"No rules apply to {BOB}, rules [{rules}]"


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("default", "Invalid rule: `default`"),
        ("RULE:^CN=(.*?)$/$1", "Invalid rule: `RULE:^CN=(.*?)$/$1`"),
        ("RULE:^CN=(.*?)$/$1/X", "unmatched substring: `X`"),
        ("RULE:^CN=(.*?)$/$1/LU", "unmatched substring: `U`"),
        (r"RULE:\p{Lu}(/$1/", "Invalid rule"),
        (r"RULE:(?<name>.*)/$1/", "Invalid rule"),
        ("RULE:.*/$1/", "the pattern has no group 1"),
        ("RULE:(.*)/$/", "after $ in the replacement"),
    ],
)
def test_a_bad_rule_is_refused(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule") as error:
        parse_rules(rules)

    assert problem in str(error.value)
