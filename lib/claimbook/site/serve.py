"""Show a built site on localhost."""

from __future__ import annotations

import argparse
import contextlib
import sys
import webbrowser
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: Names under which a browser on this machine reaches the server. A page of elsewhere whose name
#: is made to lead here has another, and must not read what is served.
_NAMES = ("127.0.0.1", "localhost")


class _Site(SimpleHTTPRequestHandler):
    """Gives the files of a folder to this machine, and nothing else."""

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for a request."""

    def send_head(self) -> Any:
        """Refuse requests under another name, and files that lie elsewhere."""
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
            asked = Path(self.translate_path(self.path)).resolve()
        except ValueError:  # no name of a host, or of a file
            self.send_error(HTTPStatus.BAD_REQUEST, "This names no host or no file")
            return None
        if host not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN, "This server is for its own machine")
            return None
        # A link in the folder may lead out of it.
        if not asked.is_relative_to(self._root()):
            self.send_error(HTTPStatus.NOT_FOUND, "File not found")
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> Any:
        """List nothing: a folder without an index is no page."""
        self.send_error(HTTPStatus.NOT_FOUND, "File not found")

    def _root(self) -> Path:
        return Path(self.directory).resolve()


def server(site: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder, on this machine only.

    Parameters
    ----------
    site : Path
        The folder. Its pages and files are served, no lists of them and nothing outside.
    port : int
        0 picks a free one.

    Returns
    -------
    ThreadingHTTPServer
        Not started yet; ``server_port`` is the port.
    """
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Site, directory=str(site)))


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
