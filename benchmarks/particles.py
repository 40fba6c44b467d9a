"""Tokens under self-attention: our integrator next to SciPy's on the field in NumPy.

One trajectory of 32 tokens in dimension 128 up to time 100, for identity matrices and for two
ensembles of random ones, at tolerances that give both the same accuracy, against a third run at
much tighter ones. Then the phase diagram of Figure 2.2 of the notes' Chapter 14, and the collapse
of 300 tokens on the circle, whose time SciPy cannot reach.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import Row, best, row, seconds
from scipy.integrate import solve_ivp
from threadpoolctl import threadpool_limits

from companion.attention.particles.attention import Attention, Head, random_tokens
from companion.attention.particles.clusters import clustered_share
from companion.attention.particles.ensembles import random_head
from traindyn._types import Array
from traindyn.parallel import map_ordered

GROUP = "Attention"
line = partial(row, GROUP)

TOKENS, DIMENSION, HORIZON = 32, 128, 100.0
LOOSE = 1e-7
"""Relative tolerance of SciPy's default method; ours is chosen at least as accurate."""


def numpy_field(beta: float, head: Head) -> Callable[[float, Array], Array]:
    """Plain vectorised NumPy, as one writes it for SciPy."""
    query, key, value = (None if m is None else np.asarray(m) for m in head)
    form = key if query is None else query.T @ np.asarray(key)

    def field(_: float, flat: Array) -> Array:
        x = flat.reshape(TOKENS, DIMENSION)
        scores = beta * (x if form is None else x @ form) @ x.T
        scores -= scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(axis=1, keepdims=True)
        pull = weights @ (x if value is None else x @ value.T)
        pull -= np.sum(pull * x, axis=1, keepdims=True) * x
        return np.asarray(pull.ravel())

    return field


def compare(name: str, beta: float, head: Head) -> list[Row]:
    """Our trajectory and SciPy's, after a check that ours is at least as accurate."""
    start = random_tokens(TOKENS, DIMENSION, rng=1)
    model, ends = Attention(beta, [head]), [0.0, HORIZON]
    exact = model.flow(start, ends, rtol=1e-12, atol=1e-14).tokens[-1]
    field = numpy_field(beta, head)

    def theirs() -> Any:
        return solve_ivp(field, (0, HORIZON), start.ravel(), rtol=LOOSE, atol=LOOSE / 100)

    their_error = float(np.abs(theirs().y[:, -1].reshape(start.shape) - exact).max())
    rtol = 1e-5
    while True:
        error = float(np.abs(model.flow(start, ends, rtol=rtol, atol=rtol / 100).tokens[-1]
                             - exact).max())  # fmt: skip
        if error <= their_error:
            break
        rtol /= 3
    ours = best(lambda: model.flow(start, ends, rtol=rtol, atol=rtol / 100), 1) / 1e6
    other = best(theirs, 1, repeats=3) / 1e6
    return [
        line(f"{name}: one trajectory", ours, "s", f"error {error:.1g}"),
        line(f"{name}: SciPy's solve_ivp on NumPy", other, "s", f"error {their_error:.1g}",
             other / ours),
    ]  # fmt: skip


def diagram(cells: int = 20) -> float:
    """Seconds for the four panels of Figure 2.2, on all cores."""
    times = np.linspace(0.0, 40.0, cells + 1)

    def one(case: tuple[str, float]) -> list[float]:
        head = random_head(case[0], DIMENSION, rng=2)  # type: ignore[arg-type]
        flow = Attention(case[1], [head]).flow(
            random_tokens(TOKENS, DIMENSION, rng=3), times, rtol=1e-6, atol=1e-6
        )
        return [clustered_share(x) for x in flow.tokens[1:]]

    cases = [(panel, beta) for panel in "ABCD" for beta in np.linspace(0, 18, cells)]
    return seconds(lambda: map_ordered(one, cases, workers=-1))


def measure() -> list[Row]:
    """Measure everything, in about half a minute.

    Returns
    -------
    list of dict
        Keys as in :func:`sgd.measure`.
    """
    rows: list[Row] = []
    with threadpool_limits(limits=1):
        rows += compare("Identity matrices, β = 9", 9.0, Head())
        for panel in ("A", "C"):
            rows += compare(f"Panel {panel}, β = 9", 9.0, random_head(panel, DIMENSION, rng=4))
    rows.append(line("Figure 2.2, four panels of 20 × 20", diagram(), "s", "tolerance 1e-6"))
    circle = random_tokens(300, 2, rng=5)
    flow = Attention(80.0).flow(circle, [0.0, 1e300], rtol=1e-6, atol=1e-8)
    wait = np.log10(flow.mergers[-1])
    spent = best(lambda: Attention(80.0).flow(circle, [0.0, 1e300], rtol=1e-6, atol=1e-8), 1)
    rows.append(
        line("300 tokens on the circle until one cluster", spent / 1e6, "s",
             f"β = 80; that is at t = 10^{wait:.0f}")
    )  # fmt: skip
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
