"""What a release has beside the distributions has its version, or is left out with a reason."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
import yaml
from contrib.helm.helm import HELM
from contrib.release import artifacts
from contrib.release.tree import exported

from support.reference_page import ROOT

ENGINE = """\
#!/bin/sh
echo "$@" >> {log}
case "$1" in run) echo "odradek {version}";; version) exit {status};; esac
"""


@pytest.fixture
def path_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("ODRADEK_CONTAINER_BASE", raising=False)
    return folder


def engine(folder: Path, *, version: str = "9.1", status: int = 0) -> Path:
    """Write a program that stands for a container engine; return its log."""
    log = folder / "log"
    program = folder / "podman"
    program.write_text(ENGINE.format(log=log, version=version, status=status), encoding="utf-8")
    program.chmod(0o755)
    for tool in ("sh", "echo"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    return log


def test_what_a_machine_lacks_is_named(
    path_of_programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODRADEK_HELM_CACHE", str(tmp_path / "helm"))
    engine(path_of_programs, status=1)

    said = [
        artifacts.relay(ROOT, "9.1", tmp_path),
        artifacts.chart(ROOT, "9.1", 0, tmp_path),
        *artifacts.images(ROOT, "9.1", tmp_path),
    ]

    assert said == [
        "left out: the jar of the relay, there is no mvn",
        "left out: the chart, there is no helm, and go is not installed",
        "left out: the images, no container engine answers (docker, podman)",
    ]


def test_each_image_is_built_from_the_wheels_with_the_version(path_of_programs: Path, tmp_path: Path) -> None:
    log = engine(path_of_programs)

    names = artifacts.images(ROOT, "9.1", tmp_path / "dist")

    lines = log.read_text(encoding="utf-8").splitlines()
    builds = [line for line in lines if line.startswith("build")]
    assert names == ["odradek:9.1", "odradek-pipeline:9.1", "odradek-ephemeral:9.1"]
    assert len(builds) == len(names) == len([line for line in lines if line.startswith("run")])
    for line, name in zip(builds, names, strict=True):
        assert f"--build-arg VERSION=9.1 -t {name} {tmp_path / 'dist'}" in line


def test_an_image_of_another_version_fails(path_of_programs: Path, tmp_path: Path) -> None:
    engine(path_of_programs, version="9.0")

    with pytest.raises(ValueError, match=r"odradek:9\.1 has odradek 9\.0"):
        artifacts.images(ROOT, "9.1", tmp_path)


def test_every_target_of_the_containerfile_has_an_image() -> None:
    text = (ROOT / "contrib/container/Containerfile").read_text(encoding="utf-8")

    targets = [line.rpartition(" AS ")[2] for line in text.splitlines() if line.startswith("FROM ")]
    assert [each for each in targets if not each.startswith("build")] == list(artifacts.IMAGES)


@pytest.mark.slow
def test_the_chart_has_the_version_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    if not HELM.kept.exists():
        pytest.skip("it takes minutes to build: python -m contrib.helm.helm")
    tree = exported(ROOT, "HEAD", tmp_path / "tree")
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        assert artifacts.chart(tree, "9.1.0", 1_700_000_000, tmp_path / name) == "odradek-9.1.0.tgz"
        os.utime(tree / "contrib/helm/odradek/values.yaml")
        found.append((tmp_path / name / "odradek-9.1.0.tgz").read_bytes())

    assert found[0] == found[1]
    with tarfile.open(tmp_path / "first/odradek-9.1.0.tgz") as archive:
        chart = archive.extractfile("odradek/Chart.yaml")
        assert chart is not None
        read = yaml.safe_load(chart)
    assert (read["version"], read["appVersion"]) == ("9.1.0", "9.1.0")
