"""Libraries by the names that clients send, and the teams of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.findings.client_metrics import client_metrics
from odradek.plugin import ConfigError
from odradek_console.engine.libraries import (
    KEPT,
    defects_of,
    known,
    library_of,
    product_of,
    support_of,
    version_of,
)
from odradek_console.engine.owners import read_owners


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.10.0", (2, 10, 0, 0, 0)),
        ("v1.21.3", (1, 21, 3, 0, 0)),
        ("2.5.0-librdkafka-2.8.1", (2, 8, 1, 0, 0)),
        ("2.16.1-rdkafka-2.16.0", (2, 16, 0, 0, 0)),
        ("7.9.0-ccs", (7, 9, 0, 0, 0)),
        ("4.3.1-SNAPSHOT", (4, 3, 1, 0, -1)),
        ("2.10.1-RC2", (2, 10, 1, 0, -1)),
        ("2.10.1rc1", (2, 10, 1, 0, -1)),
        ("2.10.1.dev3", (2, 10, 1, 0, -1)),
        ("v1.21.4-0.20260801120000-0123456789ab", (1, 21, 4, 0, -1)),
        ("2.5", (2, 5, 0, 0, 0)),
        ("1.2.3.4.5.6", (1, 2, 3, 4, 0)),
        ("unknown", ()),
        ("", ()),
        ("9" * 90, (999_999_999, 0, 0, 0, 0)),
    ],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_versions_are_ordered_with_those_before_a_release_before_it() -> None:
    texts = ["2.9.9", "2.10.0", "2.10.1-RC1", "2.10.1", "2.10.1.1", "2.11.0-SNAPSHOT", "2.11.0"]

    assert sorted(texts, key=version_of) == texts


@pytest.mark.parametrize(
    ("software", "version", "library"),
    [
        ("librdkafka", "2.10.0", "librdkafka"),
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", "librdkafka"),
        ("Confluent-Kafka-Go", "2.10.0", "librdkafka"),
        ("node-rdkafka", "3.3.1", "librdkafka"),
        ("mine", "1.0-librdkafka-2.10.0", "librdkafka"),
        ("kgo", "v1.22.2", "franz-go"),
        ("apache-kafka-java", "4.3.1", "apache-kafka-java"),
        ("Mine", "1", "mine"),
        ("", "", ""),
    ],
)
def test_bindings_are_their_library(software: str, version: str, library: str) -> None:
    assert library_of(software, version) == library


@pytest.mark.parametrize(
    ("software", "version", "fixes"),
    [
        ("librdkafka", "2.4.0", []),
        ("librdkafka", "2.5.0", ["2.5.3", "2.10.1", "2.10.1"]),
        ("librdkafka", "2.5.3", ["2.10.1", "2.10.1"]),
        ("confluent-kafka-python", "2.10.0", ["2.10.1", "2.10.1", "2.11.0"]),
        ("confluent-kafka-python", "2.10.1-rdkafka-2.10.0", ["2.10.1", "2.10.1", "2.11.0"]),
        ("confluent-kafka-javascript", "1.4.0-librdkafka-2.11.0", []),
        ("confluent-kafka-javascript", "2.6.0", []),
        ("librdkafka", "2.10.1-RC1", ["2.10.1", "2.10.1", "2.11.0"]),
        ("librdkafka", "2.10.1", ["2.11.0"]),
        ("librdkafka", "2.11.0", []),
        ("franz-go", "v1.18.1", []),
        ("kgo", "v1.21.3", ["1.21.4"]),
        ("kgo", "v1.21.4", []),
        ("apache-kafka-java", "4.3.1", []),
        ("librdkafka", "unknown", []),
        ("mine", "2.5.0", []),
    ],
)
def test_known_defects(software: str, version: str, fixes: list[str]) -> None:
    assert [each.fixed_text for each in defects_of(software, version)] == fixes


@pytest.mark.parametrize(
    ("software", "version", "before"),
    [
        ("apache-kafka-java", "3.8.1", "3.9.0"),
        ("apache-kafka-java", "3.9.1", ""),
        ("apache-kafka-java", "4.0.0", "4.1.0"),
        ("apache-kafka-java", "4.1.0-SNAPSHOT", "4.1.0"),
        ("apache-kafka-java", "4.1.0", ""),
        ("apache-kafka-java", "7.7.1-ccs", "7.8.0"),
        ("apache-kafka-java", "7.7.1-ce", "7.8.0"),
        ("apache-kafka-java", "7.9.0-ccs", ""),
        ("confluent-kafka-go", "2.5.3-librdkafka-2.5.3", "2.6.0"),
        ("confluent-kafka-javascript", "1.0.0", ""),
        ("librdkafka", "2.6.0", ""),
        ("kgo", "v1.0.0", ""),
    ],
)
def test_versions_past_their_support(software: str, version: str, before: str) -> None:
    found = support_of(software, version)

    assert (found.before_text if found else "") == before


def test_each_row_of_the_data_has_a_source_and_each_wrong_metric_is_known() -> None:
    rows = known()

    sources = [each.source for each in rows.defects] + [each.source for each in rows.silences]
    sources += [each.source for each in rows.supports]
    wrong = {name for each in rows.defects for name in each.wrong}
    assert all("https://" in each for each in sources)
    assert wrong <= client_metrics().keys()
    assert all(each.first < each.fixed for each in rows.defects)
    assert all(each.first < each.before for each in rows.supports)


def test_the_first_owner_that_matches(tmp_path: Path) -> None:
    path = tmp_path / "owners.toml"
    path.write_text(
        '[[owner]]\nteam = "pay"\nprincipal = "User:pay-*"\n'
        '[[owner]]\nteam = "search"\nclient_id = "index-*"\ngroup_id = "s?"\n'
    )

    owners = read_owners(path)

    assert owners.team(principal="User:pay-1", client_id="index-1", group_id="s1") == "pay"
    assert owners.team(principal="User:x", client_id="index-1", group_id="s1") == "search"
    assert owners.team(principal="User:x", client_id="index-1", group_id="other") == ""


@pytest.mark.parametrize(
    "text", ["", "owner = 1", "[[owner]]\nteam = 'a'", "[[owner]]\nteam = 'a'\nuser = 'x'", "[["]
)
def test_a_wrong_file_of_owners_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "owners.toml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=r"owners\.toml"):
        read_owners(path)


def test_names_that_clients_make_up_do_not_take_memory_without_end() -> None:
    for number in range(2 * KEPT):
        support_of(f"library-{number}", f"{number}")
        defects_of(f"library-{number}", f"{number}")

    assert all(
        each.cache_info().currsize <= KEPT for each in (library_of, product_of, defects_of, support_of)
    )
