"""Bad input for attention as interacting particles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Case, collect, without_example

from companion.attention.particles.attention import Attention, FeedForward, Head

TOKENS = [[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]]
FOUR = [*TOKENS, [-1.0, 0.0]]
LAYER = FeedForward(np.eye(2), np.eye(2), np.zeros(2), "tanh")


def _attention() -> Attention:
    return Attention(1.0)


def _flow(**options: Any) -> tuple[Attention, dict[str, Any]]:
    return _attention(), {
        "tokens": TOKENS, "times": [0.0, 0.5], "masses": [0.5, 0.25, 0.25], "rtol": 1e-4,
        "atol": 1e-6, "most_steps": 50,
    }  # fmt: skip


EXAMPLES = {
    "companion.attention.particles.antipodal.antipodal_rate": lambda: {
        "head": Head(value=np.diag([2.0, 1.0])), "direction": [1.0, 0.0], "sizes": (1, 2),
        "inverse_temperature": 1.0,
    },
    "companion.attention.particles.antipodal.leading_direction": lambda: {"value": np.eye(2)},
    "companion.attention.particles.attention.Attention": lambda: {
        "inverse_temperature": 1.0, "heads": (Head(value=np.eye(2)),), "feed_forward": LAYER,
    },
    "companion.attention.particles.attention.Attention.flow": _flow,
    "companion.attention.particles.attention.Attention.velocity": lambda: (_attention(), {"tokens": TOKENS}),
    "companion.attention.particles.attention.Attention.weights": lambda: (_attention(), {"tokens": TOKENS, "head": 0}),
    "companion.attention.particles.attention.energy": lambda: {"tokens": TOKENS, "inverse_temperature": 1.0},
    "companion.attention.particles.attention.energy_growth": lambda: {"tokens": TOKENS, "inverse_temperature": 1.0},
    "companion.attention.particles.attention.random_tokens": lambda: {"count": 3, "dimension": 2, "rng": 0},
    "companion.attention.particles.clusters.cluster_count": lambda: {"tokens": TOKENS, "tolerance": 1e-3},
    "companion.attention.particles.clusters.clustered_share": lambda: {"tokens": TOKENS, "tolerance": 1e-3},
    "companion.attention.particles.clusters.linkage": lambda: {"tokens": TOKENS, "masses": [0.5, 0.25, 0.25]},
    "companion.attention.particles.landscape.consensus_hessian": lambda: {"tokens": TOKENS},
    "companion.attention.particles.landscape.cross_ratios": lambda: {"tokens": FOUR},
    "companion.attention.particles.laws.cluster_time": lambda: {
        "inverse_temperature": 1.0, "count": 3, "tolerance": 1e-2,
    },
    "companion.attention.particles.laws.growth_rate": lambda: {
        "degree": [1, 2], "dimension": 3, "inverse_temperature": 1.0,
    },
    "companion.attention.particles.laws.pair_time": lambda: {
        "product": 0.2, "inverse_temperature": 1.0, "masses": (0.25, 0.75), "tolerance": 1e-2,
    },
    "companion.attention.particles.mean_field.circle_flow": lambda: {
        "density": [0.5 / np.pi] * 12, "times": [0.0, 0.5], "inverse_temperature": 1.0,
    },
    "companion.attention.particles.residual.euler_error": lambda: {"layers": LAYER, "x": [1.0, 2.0], "horizon": 0.5},
    "companion.attention.particles.residual.neural_ode": lambda: {"layers": LAYER, "x": [1.0, 2.0], "horizon": 0.5},
    "companion.attention.particles.residual.residual_network": lambda: {
        "layers": LAYER, "x": [1.0, 2.0], "depth": 2, "horizon": 0.5,
    },
}  # fmt: skip
CASES = collect(
    ["companion.attention.particles"],
    EXAMPLES,
    {},
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
