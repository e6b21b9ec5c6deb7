"""A bare page of Starlette, and one with a table of a hundred rows: the peer of `bench.console_pages`.

Prints ``ready port=N`` and ends when standard input closes.
"""

from __future__ import annotations

import socket
import sys
import threading

import uvicorn
from jinja2 import DictLoader, Environment
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

ROWS, COLUMNS = 100, 11
TABLE = """<!doctype html><title>bare</title><table>{% for row in rows %}<tr>
{% for cell in row %}<td class="{{ cell.kind }}">{{ cell.text }}</td>{% endfor %}
</tr>{% endfor %}</table>"""
TEMPLATES = Environment(loader=DictLoader({"table.html": TABLE}), autoescape=True)
CELLS = [
    [{"kind": f"column-{column}", "text": f"{row} and {column} <b>"} for column in range(COLUMNS)]
    for row in range(ROWS)
]


def hello(request: Request) -> HTMLResponse:
    return HTMLResponse("<!doctype html><title>bare</title><h1>bare</h1>")


def table(request: Request) -> HTMLResponse:
    return HTMLResponse(TEMPLATES.get_template("table.html").render(rows=CELLS))


def main() -> None:
    app = Starlette(
        routes=[Route("/", hello), Route("/table", table)],
        middleware=[Middleware(GZipMiddleware, minimum_size=1_000)],
    )
    # asyncio sends small answers at once only if the socket says that it is of TCP.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = uvicorn.Server(uvicorn.Config(app, http="h11", loop="asyncio", ws="none", log_level="error"))

    def stop() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=stop, daemon=True).start()
    print(f"ready port={listening.getsockname()[1]}", flush=True)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
