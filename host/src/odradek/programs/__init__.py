"""The programs: a host, a gateway, forwarders. Each is put together, started and stopped in one file."""
