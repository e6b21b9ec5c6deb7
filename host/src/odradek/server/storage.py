"""What a host keeps on disk, under one lock: the metadata file and the logs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from odradek.log.log_manager import LogManager
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import MetadataStore, StoreError
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.plugin.config import ConfigError
from odradek.server.data_dir import DataDir
from odradek.wire.api_error import ApiError

METADATA_FILE = "metadata.db"
LOG_FOLDER = "logs"


class Storage:
    """The open data directory of one host.

    Raises:
        ConfigError: It cannot be used, or another process uses it. Nothing stays open then.
    """

    def __init__(self, path: Path, now_ms: int) -> None:
        with ExitStack() as opened:
            opened.callback(DataDir(path).close)
            try:
                self.metadata = MetadataStore(path / METADATA_FILE)
                opened.callback(self.metadata.close)
                self.offsets = SqliteOffsetStore(path / METADATA_FILE)
                opened.callback(self.offsets.close)
                self.transactions = SqliteTransactionStore(path / METADATA_FILE)
                opened.callback(self.transactions.close)
                self.logs = LogManager(path / LOG_FOLDER, now_ms=now_ms)
                opened.callback(self.logs.close)
            except (ApiError, StoreError) as error:
                raise ConfigError("data.dir", str(error)) from error
            self.opened = opened.pop_all()

    def close(self) -> None:
        """Close everything, the lock last."""
        self.opened.close()
