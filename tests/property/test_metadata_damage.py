"""One flipped bit in the metadata file: the host starts or says in one line why not, and keeps every log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.metadata.client_quota_store import ClientQuotaRow, ClientQuotaStore
from odradek.metadata.credential_store import CredentialRow, CredentialStore
from odradek.plugin.config import ConfigError
from odradek.testing.host_thread import HostThread
from odradek.wire.config_resource import ResourceType
from support.batches import NOW_MS, batch_of
from support.examples import examples
from support.hosts import running_host

METADATA = "metadata.db"
SEGMENT = f"{0:020d}.log"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a host that uses every table."""
    path = tmp_path_factory.mktemp("intact") / "data"
    with running_host(path, "subscriptions.all.metrics=*") as host:
        host.call(lambda: use(host))
    return path


def use(thread: HostThread) -> None:
    host = thread.host
    topic = host.broker.topics.create("orders", 2, {"retention.ms": "-1"})
    topic.partitions[0].append(batch_of(b"x"), NOW_MS)
    metadata = host.metadata
    CredentialStore(metadata).put_credential(CredentialRow("bob", 1, b"s" * 16, b"k" * 32, b"v" * 32, 4096))
    ClientQuotaStore(metadata).put_quota(ClientQuotaRow({"user": "bob"}, "producer_byte_rate", 10.5))
    metadata.put_resource(ResourceType.BROKER, "", {"log.retention.ms": "10000"})
    metadata.put_resource(ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    host.ground.storage.offsets.put_offsets([("g", topic.id, 0, 1, 0, "", 5, None)])
    host.ground.storage.offsets.put_group(("g", "classic", "consumer", 1, None))


@given(st.data())
@settings(max_examples=examples(40), deadline=None)
def test_a_flipped_bit_costs_no_record_and_gives_no_traceback(intact: Path, data: st.DataObject) -> None:
    content = bytearray((intact / METADATA).read_bytes())
    used = [position for position, byte in enumerate(content) if byte]
    content[data.draw(st.sampled_from(used))] ^= 1 << data.draw(st.integers(0, 7))
    damaged = intact.with_name("damaged")
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(intact, damaged)
    (damaged / METADATA).write_bytes(content)

    problem = ""
    try:
        with running_host(damaged):
            pass
    except ConfigError as error:
        problem = str(error)

    assert "\n" not in problem
    kept = {path.read_bytes() for path in damaged.glob(f"logs/orders-0*/{SEGMENT}")}
    assert (intact / "logs" / "orders-0" / SEGMENT).read_bytes() in kept
