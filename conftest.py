"""What is collected, and which tests share a process."""

from importlib.util import find_spec

import pytest

# Doctests of rooms that need an extra are collected only where it is installed.
EXTRAS = {"data": ("pooch", "sklearn"), "deep": ("jax", "networkx")}

collect_ignore_glob = [
    f"lib/traindyn/{room}/*" for room, needed in EXTRAS.items() if not all(map(find_spec, needed))
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file together, whose fixtures are costly.

    The pages of the site, which take longest, are looked at by as many processes as there are
    kinds of visit.
    """
    for item in items:
        group = str(item.path)
        if item.name.startswith("test_page_renders["):
            group += item.name.partition("-book/")[0]
        item.add_marker(pytest.mark.xdist_group(group))
