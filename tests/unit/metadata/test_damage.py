"""Damage of a metadata file is told in words, whatever bytes it has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from odradek.metadata.damage import damage

PLAIN = b'"name" text /*       */'
DAMAGED = b'"\xff\xff\xff\xff" text not null   '


def test_a_report_of_sqlite_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    file = tmp_path / "metadata.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"create table t ({PLAIN.decode()})")
        connection.execute("insert into t values (null)")
        connection.commit()
    content = file.read_bytes()
    assert content.count(PLAIN) == 1

    file.write_bytes(content.replace(PLAIN, DAMAGED))

    assert damage(file) == "NULL value in t.\ufffd\ufffd\ufffd\ufffd"
