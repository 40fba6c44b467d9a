"""Which parameters of a test are tried with every change, and which only every night."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def nightly_but(daily: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Mark as nightly the parameters of a test that resemble those tried with every change.

    Parameters
    ----------
    daily : collection
        The values that are always tried.
    values : iterable
        All values.

    Returns
    -------
    list
        All values, for `pytest.mark.parametrize`.

    Raises
    ------
    ValueError
        If a value of `daily` is not one of `values`.
    """
    every = list(values)
    absent = [one for one in daily if one not in every]
    if absent:
        raise ValueError(f"daily must be among the values, {absent} is not")
    return [one if one in daily else pytest.param(one, marks=pytest.mark.nightly) for one in every]
