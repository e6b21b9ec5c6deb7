"""``reference/receiver-contract.md`` has a paragraph for each rule, with its kinds of plugin and its
requirements.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from odradek.testing.contracts import Capability, Kind, Subject, rules_of
from odradek.testing.contracts.explanations import EXPLANATIONS, THREADS_TITLE
from odradek.testing.contracts.rule import Rule
from support.reference_page import rows, sections

SECTIONS = sections("reference/receiver-contract.md")
TITLES = {title: text for title, text in SECTIONS.items() if re.match(r"R\d+-", title)}
RULES: dict[str, list[Rule]] = {}
for kind in Kind:
    for each in rules_of(kind):
        RULES.setdefault(str(each), []).append(each)


def first_paragraph(title: str) -> str:
    return " ".join(TITLES[title].strip().partition("\n\n")[0].split())


def test_each_rule_is_a_heading_in_the_order_of_the_numbers() -> None:
    assert list(TITLES) == sorted(RULES, key=lambda title: int(title[1:].partition("-")[0]))


@pytest.mark.parametrize("title", RULES)
def test_a_rule_names_its_kinds_of_plugin(title: str) -> None:
    first = first_paragraph(title)

    kinds = re.fullmatch(r"For: (?P<kinds>[a-z, ]+)\.(?: Needs: .+\.)?", first)

    assert kinds is not None, first
    assert kinds["kinds"].split(", ") == [rule.kind.value for rule in RULES[title]]


@pytest.mark.parametrize("title", RULES)
def test_a_rule_names_its_required_capabilities(title: str) -> None:
    first = first_paragraph(title)

    named = {word for word in re.findall(r"\w+", first.partition("Needs:")[2]) if word in set(Capability)}

    assert named == {capability.value for rule in RULES[title] for capability in rule.needs}


@pytest.mark.parametrize("title", RULES)
def test_a_rule_has_an_example_of_breaking_it(title: str) -> None:
    assert "\n*Broken by:* " in TITLES[title]


def test_every_capability_is_a_row() -> None:
    written = [name for name in rows(SECTIONS["Capabilities"]) if name != "name"]

    assert written == [capability.value for capability in Capability]


def test_every_field_of_the_subject_is_a_row() -> None:
    written = [name for name in rows(SECTIONS["The subject"]) if name != "field"]

    assert written == [field.name for field in dataclasses.fields(Subject)]


@pytest.mark.parametrize("title", [*RULES, THREADS_TITLE])
def test_a_text_of_the_page_is_shown_in_two_lines(title: str) -> None:
    demand, broken_by = EXPLANATIONS[title].splitlines()

    assert broken_by.startswith("Broken by: ")
    assert demand in " ".join(SECTIONS[title].split())
