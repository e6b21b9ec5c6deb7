"""Libraries by the names that clients send, and the teams of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError
from odradek_console.engine.libraries import defects_of, known, library_of, version_of
from odradek_console.engine.owners import read_owners


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.10.0", (2, 10, 0)),
        ("v1.21.3", (1, 21, 3)),
        ("2.5.0-librdkafka-2.8.1", (2, 8, 1)),
        ("2.16.1-rdkafka-2.16.0", (2, 16, 0)),
        ("4.3.1-SNAPSHOT", (4, 3, 1)),
        ("unknown", ()),
        ("9" * 90, (999_999_999,)),
    ],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_bindings_are_their_library() -> None:
    names = ["librdkafka", "confluent-kafka-python", "kgo", "apache-kafka-java", "Mine"]

    assert [library_of(each) for each in names] == [
        "librdkafka",
        "librdkafka",
        "franz-go",
        "apache-kafka-java",
        "mine",
    ]


@pytest.mark.parametrize(
    ("software", "version", "count"),
    [
        ("librdkafka", "2.4.0", 0),
        ("librdkafka", "2.5.0", 1),
        ("confluent-kafka-python", "2.10.0", 2),
        ("librdkafka", "2.10.1", 1),
        ("librdkafka", "2.11.0", 0),
        ("franz-go", "v1.21.3", 1),
        ("franz-go", "v1.21.4", 0),
        ("librdkafka", "unknown", 0),
    ],
)
def test_known_defects(software: str, version: str, count: int) -> None:
    assert len(defects_of(software, version)) == count


def test_each_row_of_the_data_has_a_source() -> None:
    defects, supports = known()

    sources = [each.source for each in defects] + [each.source for each in supports]
    assert all("https://" in each for each in sources)


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
