"""The server of a built site."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claimbook.site import serve


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A site with a page, a folder without one, and links."""
    site = tmp_path / "site"
    (site / "files").mkdir(parents=True)
    (site / "index.html").write_text("home", encoding="utf8")
    (site / "files" / "data.csv").write_text("1,2", encoding="utf8")
    (site / "within.html").symlink_to("index.html")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret", encoding="utf8")
    (site / "out").symlink_to(tmp_path / "secret")
    (site / "key").symlink_to(tmp_path / "secret" / "key")
    with serve.server(site, 0) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served.server_port
        served.shutdown()
        thread.join()


def ask(port: int, path: str, host: str = "localhost", method: str = "GET") -> tuple[int, str]:
    """Status and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_pages_and_files_are_served(port: int) -> None:
    """The site must be whole."""
    assert ask(port, "/") == ask(port, "/index.html") == ask(port, "/within.html") == (200, "home")
    assert ask(port, "/files/data.csv", host=f"127.0.0.1:{port}") == (200, "1,2")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example"])
def test_pages_of_elsewhere_cannot_read_the_site(port: int, host: str) -> None:
    """A name of elsewhere can be made to lead to this machine."""
    for method in ("GET", "HEAD"):
        status, content = ask(port, "/", host=host, method=method)
        assert status == 403
        assert "home" not in content


@pytest.mark.parametrize(
    "path", ["/out/key", "/out/", "/key", "/files/", "/../secret/key", "/%2e%2e/secret/key"]
)
def test_nothing_outside_the_site_and_no_list_of_files(port: int, path: str) -> None:
    """Links in a folder may lead to anything, and lists show what no page names."""
    status, content = ask(port, path)
    assert status == 404
    assert "secret" not in content
    assert "data.csv" not in content


@pytest.mark.parametrize(("path", "host"), [("/%00", "localhost"), ("/", "[::1")])
def test_what_names_no_file_or_host_is_answered(port: int, path: str, host: str) -> None:
    """The server wrote a traceback and hung up."""
    assert ask(port, path, host=host)[0] == 400
