"""Time of a risk curve of ridgeless least squares, and of draws of the risk without data.

The comparison is what the formulas say literally: a pseudo-inverse of each sample covariance. Both
must agree before anything is timed.
"""

from __future__ import annotations

import numpy as np
from common import Row, best, row, seconds
from threadpoolctl import threadpool_limits

from companion.foundations.double_descent.risk import LinearModel, draw_gaussian_risk
from traindyn._types import Array

GROUP = "Double descent"
SAMPLES, LARGEST, RATIOS = 400, 1000, 40
TOLERANCE = 1e-6


def data() -> tuple[list[LinearModel], Array]:
    """Isotropic inputs with 40 numbers of features, none of them equal to the samples'."""
    features = np.linspace(20, LARGEST, RATIOS).astype(int)
    models = [LinearModel(np.full(p, p**-0.5), 0.25) for p in features]
    return models, np.random.default_rng(1).standard_normal((SAMPLES, LARGEST))


def ours(models: list[LinearModel], x: Array) -> Array:
    """Bias and variance of every model, shape (40, 2)."""
    risks = [model.conditional_risk(x[:, : model.dimension]) for model in models]
    return np.array([[risk.bias, risk.variance] for risk in risks])


def literal(models: list[LinearModel], x: Array) -> Array:
    """Bias and variance from the pseudo-inverse of each sample covariance, shape (40, 2)."""
    rows = []
    for model in models:
        part = x[:, : model.dimension]
        covariance = part.T @ part / SAMPLES
        plus = np.linalg.pinv(covariance, hermitian=True)
        left = model.signal - plus @ (covariance @ model.signal)
        rows.append([left @ left, model.noise / SAMPLES * np.trace(plus)])
    return np.array(rows)


def measure() -> list[Row]:
    """All rows of this benchmark, on one thread."""
    with threadpool_limits(1):
        models, x = data()
        gap = float(np.abs(ours(models, x) / literal(models, x) - 1)[:, 1].max())
        if gap > TOLERANCE:
            raise AssertionError(f"the pseudo-inverse departs from the spectrum by {gap:.3g}")
        mine, theirs = (
            min(seconds(lambda work=work: work(models, x)) for _ in range(2))
            for work in (ours, literal)
        )
        large = LinearModel(np.full(1000, 1000**-0.5), 0.25)
        direct = best(lambda: large.conditional_risk(x), 1, repeats=3)
        reduced = best(
            lambda: draw_gaussian_risk(SAMPLES, 1000, 1000, signal=1.0, noise=0.25, rng=1), 1000, 3
        )
    exact = f"exact; they agree to {gap:.0e}"
    curve = f"risk curve, {RATIOS} aspect ratios, n = {SAMPLES}, p up to {LARGEST}"
    draw = f"one draw of bias and variance, n = {SAMPLES}, p = {LARGEST}"
    return [
        row(GROUP, f"{curve}: smaller Gram matrix", mine, "s", exact, 1.0),
        row(GROUP, f"{curve}: pseudo-inverse", theirs, "s", exact, theirs / mine),
        row(GROUP, f"{draw}: bidiagonal, without data", reduced, "µs", "exact in law", 1.0),
        row(GROUP, f"{draw}: given the data", direct, "µs", "exact", direct / reduced),
    ]
