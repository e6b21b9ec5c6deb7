"""The commands of ``howto/use-the-console.md`` and ``share-the-console.md`` do what the pages say."""

from __future__ import annotations

import re
import shlex
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

import pytest

from odradek import testing
from odradek.cli.main import installed_commands
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.testing import RunningHost
from odradek_console.reading.leases import exactly, grant, new_name
from odradek_console.reading.replay import deliver_since
from odradek_console.view import TOPIC
from support.console_rights import EVERYTHING, GROUP, connector, shown
from support.limited_users import limited_users
from support.reference_page import FENCE, sections
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
if "console" not in installed_commands():
    pytest.skip("odradek-console is not installed", allow_module_level=True)

SECTIONS: Final = sections("howto/use-the-console.md") | sections("howto/share-the-console.md")
BROKER, PORT = "localhost:9092", "9642"
PATIENCE_S: Final = 60
PROGRAM: Final = f'odradek() {{ {shlex.quote(sys.executable)} -m odradek "$@"; }}'


def lines(title: str, language: str = "sh") -> list[str]:
    """The lines of all blocks of a section in a language."""
    blocks = [text for name, text in FENCE.findall(SECTIONS[title]) if name == language]
    return [line for text in blocks for line in text.splitlines()]


def run(commands: list[str], folder: Path, host: RunningHost | None = None) -> str:
    """The output of commands of the page."""
    script = "\n".join(["set -e", PROGRAM, *commands])
    if host is not None:
        script = script.replace(BROKER, host.bootstrap)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{script}: {done.stderr}"
    return done.stdout


@contextmanager
def started(command: str, host: RunningHost, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command of the page that goes on, and its first line. A console listens on a free port."""
    program, *arguments = shlex.split(command.replace(BROKER, host.bootstrap))
    assert program == "odradek"
    here = [re.sub(rf"(0\.0\.0\.0|127\.0\.0\.1):{PORT}", "127.0.0.1:0", each) for each in arguments]
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", *here], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def console(title: str, host: RunningHost, folder: Path) -> Iterator[str]:
    """The console of a section, and its URL without the last slash."""
    (command,) = [line for line in lines(title) if line.startswith("odradek console")]
    with started(command, host, folder) as (_, said):
        ready = re.fullmatch(r"odradek console ready (https?://127\.0\.0\.1:\d+)/", said)
        assert ready is not None, said
        yield ready[1]


def get(url: str, context: ssl.SSLContext | None = None, **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=named), timeout=PATIENCE_S, context=context
        ) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(scope="module")
def host() -> Iterator[RunningHost]:
    """A host with a consumer that pushes."""
    with testing.host(telemetry_durability="log") as found:
        found.subscribe("*", interval_ms=500, name="all")
        found.topics.create("orders")
        with working_clients(found.bootstrap, "orders", consumers=["billing-0"]):
            yield found


def test_a_client_is_found_watched_and_left(host: RunningHost, tmp_path: Path) -> None:
    search, download = re.findall(rf"'http://127\.0\.0\.1:{PORT}(/\S+)'", "\n".join(lines("Find the client")))
    commands = lines("Find the client")[2:]
    (watch,), (left,) = lines("Watch it"), lines("Take it back")

    with console("Start it", host, tmp_path) as url:
        wait_until(lambda: "billing-0" in get(url + download)[1], lambda: get(url + download), PATIENCE_S)
        searched, first = get(url + search), get(url + "/")
    listed = run([commands[0], commands[1].replace(" top ", " top --once ")], tmp_path, host)
    with started(watch, host, tmp_path) as (process, said):
        during = run([left], tmp_path, host)
        process.send_signal(signal.SIGTERM)  # as Ctrl-C; that is ignored by what runs in the background
        assert process.wait(PATIENCE_S)
    after = run([left], tmp_path, host)

    assert searched[0] == 200
    assert "local, operator" in first[1]
    assert "billing-0" in listed
    assert "client_id=billing\\-0" in said
    assert "odradek-watch-" in during
    assert "odradek-watch-" not in after


def test_users_log_in_with_tokens(host: RunningHost, tmp_path: Path) -> None:
    title = "Let others look and act"
    made, *_ = lines(title)
    run(["odradek certs --directory certs --host 127.0.0.1"], tmp_path)
    context = ssl.create_default_context(cafile=str(tmp_path / "certs/ca.pem"))

    made = made.replace("python", shlex.quote(sys.executable), 1)
    (ann, for_ann), (oli, for_oli), (stranger, _) = (run([made], tmp_path).split() for _ in range(3))
    file = "\n".join(lines(title, "toml"))
    file = file.replace("DIGEST OF ANN'S TOKEN", for_ann).replace("DIGEST OF OLI'S TOKEN", for_oli)
    (tmp_path / "tokens.toml").write_text(file)
    with console(title, host, tmp_path) as url:
        nobody = get(url + "/api/v1/clients", context)
        viewer, operator, wrong = (
            get(url + "/", context, Authorization=f"Bearer {token}") for token in (ann, oli, stranger)
        )

    assert (nobody[0], viewer[0], operator[0], wrong[0]) == (401, 200, 200, 401)
    assert "ann, viewer" in viewer[1]
    assert "oli, operator" in operator[1]


def test_a_proxy_names_users(host: RunningHost, tmp_path: Path) -> None:
    title = "Behind a proxy that logs users in"
    proxied = "\n".join(lines(title, "nginx"))

    with console(title, host, tmp_path) as url:
        nobody = get(url + "/")
        operator = get(url + "/", X_Forwarded_User="oli", X_Forwarded_Groups="operator")
        viewer = get(url + "/", X_Forwarded_User="ann", X_Forwarded_Groups="viewer")

    assert {"X-Forwarded-User", "X-Forwarded-Groups"} <= set(re.findall(r"proxy_set_header (\S+)", proxied))
    assert nobody[0] == 401
    assert "oli, operator" in operator[1]
    assert "ann, viewer" in viewer[1]


@pytest.mark.parametrize("title", ["Beside a host", "Let users log in at an OpenID provider"])
def test_a_host_takes_the_table(tmp_path: Path, title: str) -> None:
    if "OpenID" in title:
        run(
            ["odradek certs --directory certs --host 127.0.0.1", "(umask 077; echo x > client-secret)"],
            tmp_path,
        )
    (tmp_path / "odradek.toml").write_text("\n".join(lines(title, "toml")))

    printed = run(lines(title), tmp_path)

    assert "plugin console is active" in printed


def test_the_rights_of_the_page_are_enough(tmp_path: Path) -> None:
    with limited_users(tmp_path / "data") as users:
        user = users.with_rights()
        administrator = f'at="--bootstrap-server {users.serve.bootstrap}"'
        with AdminClient(users.serve.bootstrap) as admin:
            admin.offset_commit(GROUP, {(TOPIC, 0): CommittedOffset(0)})
        run(
            [
                administrator,
                *(line.replace("User:console", f"User:{user}") for line in lines("The rights it needs")),
            ],
            tmp_path,
        )
        connect = connector(users, user)

        assert shown(connect) == EVERYTHING
        with connect() as admin:
            grant(admin, "*", 5_000, exactly("client_id", ["x"]), new_name(int(time.time()) + 60))
            assert deliver_since(admin, GROUP, 0)
