"""The memory of the machine or of its control group."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.server.sockets.machine_memory import machine_memory_bytes

MANY = 1 << 60


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {"proc/self/cgroup": "0::/a/b\n"}
V1 = {"proc/self/cgroup": "5:cpu:/\n4:hugetlb,memory:/a\n0::/\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (V2, None),
        (V2 | {"sys/fs/cgroup/a/b/memory.max": "max\n"}, None),
        (V2 | {"sys/fs/cgroup/a/b/memory.max": f"{MANY}\n"}, None),
        (V2 | {"sys/fs/cgroup/a/b/memory.max": "1000000\n"}, 1_000_000),
        (V2 | {"sys/fs/cgroup/a/memory.max": "2000000\n", "sys/fs/cgroup/a/b/memory.max": "max"}, 2_000_000),
        (V2 | {"sys/fs/cgroup/memory.max": "3000000\n"}, 3_000_000),
        (V1 | {"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4000000\n"}, 4_000_000),
        (V1 | {"sys/fs/cgroup/memory/memory.limit_in_bytes": "5000000\n"}, 5_000_000),
        ({"proc/self/cgroup": "nonsense\n"}, None),
    ],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], expected: int | None) -> None:
    found = machine_memory_bytes(write(tmp_path, files))

    assert found == (machine_memory_bytes(tmp_path / "nothing") if expected is None else expected)
    assert found > 0
