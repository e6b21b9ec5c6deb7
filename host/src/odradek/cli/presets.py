"""The options that say what a subscription asks for: a preset, or metrics, and an interval and a match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import click

from odradek.cli.usage import options_of
from odradek.findings.presets import INTERVAL_MS, KEY, METRICS, PRESETS, Preset, UnknownPreset, expanded
from odradek.wire.limits import INT32_MAX

OPTIONS: Final = {KEY: KEY, "interval": INTERVAL_MS, "metrics": METRICS, "match": "match"}
"""The properties of a subscription by the options that give them."""


def milliseconds(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Accept a 32-bit integer or an empty string. The broker decides which intervals are valid."""
    try:
        if value and abs(int(value)) > INT32_MAX:
            raise ValueError
    except ValueError:
        raise click.BadParameter(f"expected a whole number of milliseconds, found {value!r}") from None
    return value


subscription_options = options_of(
    click.option(
        "--preset",
        type=click.Choice(list(PRESETS)),
        help="Metrics and interval by a name, instead of --metrics.",
    ),
    click.option("--metrics", metavar="M1,M2", help="Prefixes of metric names, * for all; empty to unset."),
    click.option(
        "--interval", metavar="MS", callback=milliseconds, help="Push interval in ms; empty to unset."
    ),
    click.option(
        "--match",
        metavar="K1=V1,K2=V2",
        help="Clients to select, by regular expressions for client_id, client_instance_id, "
        "client_software_name, client_software_version, client_source_address or client_source_port; "
        "empty to unset.",
    ),
)


def given_properties(options: Mapping[str, str | None]) -> dict[str, str]:
    """The properties of the subscription on the command line; an empty value unsets one.

    Raises:
        click.UsageError: There are metrics beside a preset.
    """
    given = {key: options[option] for option, key in OPTIONS.items()}
    try:
        return expanded({key: value for key, value in given.items() if value is not None})
    except UnknownPreset as error:
        raise click.UsageError(str(error)) from None


def preset_lines(preset: Preset, name: str, properties: Mapping[str, str]) -> Iterator[str]:
    """A subscription with the questions of its preset and their metrics, for a terminal."""
    yield f"Preset {preset.id}. {preset.use}"
    for question in preset.questions:
        yield f"  {question.text}"
        yield from (f"    {prefix}" for prefix in question.prefixes)
    others = (f"{key}={value}" for key, value in properties.items() if key != METRICS)
    yield f"Subscription {name} with these metrics, {', '.join(others)}"
