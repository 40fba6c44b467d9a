"""A bound on the work of adaptive solvers, which take ever more steps until the last time."""

from __future__ import annotations

from collections.abc import Callable

from traindyn._types import Array

__all__ = ["bounded"]

MOST = 100_000
"""Evaluations of a right-hand side unless said otherwise: some 8000 steps of order eight."""


def bounded(
    field: Callable[[float, Array], Array], last: float, *, most: int = MOST
) -> Callable[[float, Array], Array]:
    """Return the right-hand side of an equation that can be evaluated so many times.

    Parameters
    ----------
    field : callable
        ``field(t, vector)``.
    last : float
        The last of the times that were asked for.
    most : int
        Evaluations.

    Raises
    ------
    ValueError
        When it is evaluated once more. The error names `times` and how far the solver came.
    """
    count = 0

    def counted(t: float, vector: Array) -> Array:
        nonlocal count
        if count == most:
            raise ValueError(
                f"times must be within reach of {most} evaluations of the drift, got {last:g}, of "
                f"which the solver came to {t:g}: next to an equilibrium its steps cannot grow; "
                "end earlier, or look for the fixed point"
            )
        count += 1
        return field(t, vector)

    return counted
