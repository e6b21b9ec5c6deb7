"""``--from-file``: new offsets as comma-separated values, one partition per line.

A line is ``topic,partition,offset`` if the command line names one group, otherwise
``group,topic,partition,offset`` (CsvUtils.java). Empty lines are ignored.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from odradek.client.leaders import Partition
from odradek.plugin.config import ConfigError

ANY_GROUP = ""
"""Stands for the only group on the command line. No group in the file has an empty id."""


class ResetFile:
    """New offsets by group."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[Partition, int]] = defaultdict(dict)

    def get(self, group: str) -> dict[Partition, int] | None:
        """The new offsets of a group; None if the file has none."""
        return self.offsets.get(group, self.offsets.get(ANY_GROUP))

    def add(self, fields: list[str], one_group: bool) -> None:
        """Add a line.

        Raises:
            ValueError: The line does not have the expected form.
        """
        if len(fields) == 3 and one_group:
            fields = [ANY_GROUP, *fields]
        group, topic, index, offset = (field.strip() for field in fields)
        if int(index) < 0 or int(offset) < 0:
            raise ValueError(fields)
        self.offsets[group][topic, int(index)] = int(offset)


def read_reset_file(path: Path, one_group: bool) -> ResetFile:
    """Read the file.

    Raises:
        ConfigError: The file cannot be read, or a line does not have the expected form.
    """
    expected = "[group,]topic,partition,offset" if one_group else "group,topic,partition,offset"
    found = ResetFile()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--from-file {path}", f"cannot be read: {error}") from error
    for number, fields in enumerate(csv.reader(text.splitlines()), 1):
        try:
            if fields:
                found.add(fields, one_group)
        except ValueError:
            line = ",".join(fields)
            raise ConfigError(
                f"--from-file {path}:{number}", f"expected {expected}, found {line!r}"
            ) from None
    return found
