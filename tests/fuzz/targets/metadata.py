"""A damaged metadata file. Each four bytes of the input change one byte of a good file: three for the
position among the bytes that are not zero, one for the change.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from odradek.broker.acls import Acls
from odradek.metadata.client_quota_store import ClientQuotaRow, ClientQuotaStore
from odradek.metadata.credential_store import CredentialRow, CredentialStore
from odradek.plugin import ConfigError
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.transaction.transaction_metadata import TransactionMetadata
from odradek.transaction.transaction_state import TransactionState
from odradek.upkeep.storage import METADATA_FILE, Storage
from odradek.waiting.steps import result_of
from odradek.wire.config_resource import ResourceType
from support.acls import acl
from support.batches import NOW_MS, batch_of
from support.broker import make_broker

CHANGE_BYTES = 4
MOST_CHANGES = 16
ROOT = Path(tempfile.mkdtemp(prefix="odradek-fuzz-", dir="/dev/shm" if Path("/dev/shm").exists() else None))
INTACT, DAMAGED = ROOT / "intact", ROOT / "damaged"
RECORDS = f"logs/orders-0*/{0:020d}.log"


def make_intact() -> list[int]:
    """Write the data directory of a host that uses every table; the positions in its file that are used."""
    storage = Storage(INTACT, NOW_MS)
    broker = make_broker(stores=storage, authorizer=StandardAuthorizer())
    topic = broker.topics.create("orders", 2, {"retention.ms": "-1"})
    topic.partitions[0].append(batch_of(b"x"), NOW_MS)
    metadata = storage.metadata
    CredentialStore(metadata).put_credential(CredentialRow("bob", 1, b"s" * 16, b"k" * 32, b"v" * 32, 4096))
    ClientQuotaStore(metadata).put_quota(ClientQuotaRow({"user": "bob"}, "producer_byte_rate", 10.5))
    metadata.put_resource(ResourceType.BROKER, "", {"log.retention.ms": "10000"})
    metadata.put_resource(ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    storage.offsets.put_offsets([("g", topic.id, 0, 1, 0, "", 5, None)])
    storage.offsets.put_group(("g", "classic", "consumer", 1, None))
    assert isinstance(broker.acls, Acls)
    result_of(broker.acls.create_in_steps([acl("ALLOW User:bob READ TOPIC orders")]))
    transaction = TransactionMetadata(
        transactional_id="t",
        producer_id=1_000,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({("orders", 0)}),
        start_ms=NOW_MS,
        updated_ms=NOW_MS,
    )
    storage.transactions.put_transaction("t", transaction.to_text())
    storage.close()
    return [position for position, byte in enumerate((INTACT / METADATA_FILE).read_bytes()) if byte]


USED = make_intact()
FOLDERS = [path.relative_to(INTACT) for path in sorted(INTACT.rglob("*")) if path.is_dir()]
FILES = {path.relative_to(INTACT): path.read_bytes() for path in INTACT.rglob("*") if path.is_file()}
CONTENT = FILES[Path(METADATA_FILE)]
INTACT_RECORDS = {path.read_bytes() for path in INTACT.glob(RECORDS)}


def seeds() -> Iterator[bytes]:
    """Single changes all over the file."""
    yield b""
    for position in range(0, len(USED), 50):
        yield position.to_bytes(3) + b"\x01"


def check(data: bytes) -> None:
    """Load the damaged file as a start does."""
    content = bytearray(CONTENT)
    for start in range(0, min(len(data), CHANGE_BYTES * MOST_CHANGES), CHANGE_BYTES):
        change = data[start : start + CHANGE_BYTES]
        content[USED[int.from_bytes(change[:3]) % len(USED)]] ^= change[-1]
    restore()
    (DAMAGED / METADATA_FILE).write_bytes(content)
    assert "\n" not in problem()
    assert {path.read_bytes() for path in DAMAGED.glob(RECORDS)} >= INTACT_RECORDS


def restore() -> None:
    """Make a copy of the intact folder; faster than `shutil.copytree`."""
    shutil.rmtree(DAMAGED, ignore_errors=True)
    DAMAGED.mkdir()
    for folder in FOLDERS:
        (DAMAGED / folder).mkdir()
    for path, data in FILES.items():
        (DAMAGED / path).write_bytes(data)


def problem() -> str:
    """Why the start is refused; empty if it is not."""
    try:
        storage = Storage(DAMAGED, NOW_MS)
    except ConfigError as error:
        return str(error)
    try:
        with storage.loading():
            make_broker(stores=storage, authorizer=StandardAuthorizer()).transactions.start()
    except ConfigError as error:
        return str(error)
    finally:
        storage.close()
    return ""
