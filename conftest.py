"""Doctests of rooms that need an extra are collected only where it is installed."""

from importlib.util import find_spec

EXTRAS = {"data": ("pooch", "sklearn"), "deep": ("jax", "networkx")}

collect_ignore_glob = [
    f"lib/traindyn/{room}/*" for room, needed in EXTRAS.items() if not all(map(find_spec, needed))
]
