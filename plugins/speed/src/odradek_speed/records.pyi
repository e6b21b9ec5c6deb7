def walk_records(
    body: bytes | memoryview, count: int, base_timestamp_ms: int, max_headers: int, /
) -> tuple[int, int, int, int, bool, bool, int]:
    # as `odradek.wire.record_scan.walk_in_python`
    ...
