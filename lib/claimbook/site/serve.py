"""Show a built site on localhost."""

from __future__ import annotations

import argparse
import contextlib
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing for each request."""


def server(site: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder, on this machine only.

    Parameters
    ----------
    site : Path
        The folder.
    port : int
        0 picks a free one.

    Returns
    -------
    ThreadingHTTPServer
        Not started yet; ``server_port`` is the port.
    """
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(site)))


def main(arguments: list[str] | None = None) -> int:
    """Serve a site and open it in a browser (command line)."""
    parser = argparse.ArgumentParser(prog="python -m claimbook.site.serve", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args(arguments)
    try:
        served = server(options.site, options.port)
    except OSError as error:
        print(f"port {options.port} cannot be used ({error.strerror}); try PORT=0", file=sys.stderr)
        return 1
    with served, contextlib.suppress(KeyboardInterrupt):
        address = f"http://127.0.0.1:{served.server_port}/"
        print(f"{options.site} is at {address} (Ctrl-C stops it)", flush=True)
        webbrowser.open(address)
        served.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
