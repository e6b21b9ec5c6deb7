"""What a refused token leaves behind."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import ClassVar

from odradek.process.file_threads import offload_result
from odradek.security.sasl_authenticator import judge
from odradek.security.sasl_server import SaslFailure


class Refusing:
    """A mechanism that refuses every token."""

    user: str | None = None
    doubt: str | None = None
    expires_ms: int | None = None
    claimed: str | None = None
    costly: ClassVar[bool] = True

    def evaluate(self, token: bytes) -> bytes:
        raise SaslFailure("a wrong password")


def test_a_refused_token_is_freed_at_once() -> None:
    server = Refusing()
    alive = weakref.ref(server)

    gc.disable()
    try:
        result = offload_result(partial(judge, server, b"token"))
        del server
        refusal = str(result)
        del result
        freed = alive() is None
    finally:
        gc.enable()

    assert (refusal, freed) == ("a wrong password", True)
