"""Doctests of rooms that need an extra are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") else ["lib/traindyn/deep/*"]
