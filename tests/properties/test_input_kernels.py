"""Bad input for infinitely wide networks, lazy training and random features."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Case, collect, without_example

from companion.catapults.beyond.parameterisation import KernelEntries
from companion.lazy_training.lazy.constants import LazyConstants, QuadraticMap
from companion.lazy_training.tangent_kernel.network import Network
from traindyn.activations import ERF, RELU, TANH
from traindyn.kernels import KernelFlow, TwoLayer

X, Y, FRESH = [[1.0, 0.5], [-0.5, 1.0]], [1.0, -1.0], [[0.2, 0.3]]
KERNEL = [[2.0, 1.0], [1.0, 3.0]]
TIMES = [0.0, 1.0]
CONSTANTS = LazyConstants(2, 0.5, 1.0, 2.0, 0.1)
NETWORK = Network((2, 3, 1), ERF, 0.1)
TWO_LAYER = TwoLayer(2, 4, ERF)
PARABOLA = QuadraticMap([[2.0]], [[[-0.5]]])
FEATURES = [[1.0, 0.2, 0.4], [0.1, 0.6, 1.0]]


def _start(model: Any) -> Any:
    return model.initial(rng=0)


def _flow() -> KernelFlow:
    return KernelFlow(KERNEL, Y, step_size=0.1)


EXAMPLES = {
    "kernels.dual.dual_moments": lambda: {
        "activation": TANH, "covariance": [[0.5, 0.1]], "variance": [1.0],
        "other_variance": [1.0, 2.0], "order": 20,
    },
    "kernels.dual.hermite_coefficients": lambda: {
        "activation": TANH, "count": 2, "variance": 1.0, "order": 20,
    },
    "kernels.dual.own_moments": lambda: {"activation": TANH, "variance": [1.0, 2.0], "order": 20},
    "companion.lazy_training.kernels.gaussian_feature_scale": lambda: {
        "kernel": KERNEL, "cross": [[0.5, 0.2]], "own": [1.0], "targets": Y,
    },
    "companion.lazy_training.kernels.random_features": lambda: {
        "x": X, "count": 3, "activation": ERF, "bias": 0.1, "rng": 0,
    },
    "companion.lazy_training.kernels.ridgeless_variance": lambda: {
        "kernel": KERNEL, "cross": [[0.5, 0.2]], "targets": Y, "train": FEATURES,
        "fresh": FEATURES[:1], "weights": [0.2, 0.3, 0.5],
    },
    "companion.lazy_training.kernels.term_variance": lambda: {"x": X, "activation": ERF, "bias": 0.1},
    "kernels.flow.KernelFlow": lambda: {
        "kernel": KERNEL, "targets": Y, "start": [0.0, 0.1], "samples": 2, "step_size": 0.1,
    },
    "kernels.flow.KernelFlow.coefficients": lambda: (_flow(), {"times": TIMES}),
    "kernels.flow.KernelFlow.distance": lambda: (_flow(), {"times": TIMES}),
    "kernels.flow.KernelFlow.elsewhere": lambda: (
        _flow(), {"times": TIMES, "cross": [[0.5, 0.2]], "start": [0.1]},
    ),
    "kernels.flow.KernelFlow.loss": lambda: (_flow(), {"times": TIMES}),
    "kernels.flow.KernelFlow.outputs": lambda: (_flow(), {"times": TIMES}),
    "companion.lazy_training.lazy.constants.LazyConstants": lambda: {
        "samples": 2, "residual": 0.5, "sigma_min": 1.0, "sigma_max": 2.0, "lipschitz": 0.1,
    },
    "companion.lazy_training.lazy.constants.QuadraticMap": lambda: {"slope": [[2.0]], "curvature": [[[-0.5]]]},
    "companion.lazy_training.lazy.constants.QuadraticMap.outputs": lambda: (PARABOLA, {"parameters": [0.5], "x": [[0.1]]}),
    "companion.lazy_training.lazy.constants.QuadraticMap.tangent_kernel": lambda: (
        PARABOLA, {"parameters": [0.5], "x": [[0.1]], "other": [[0.2]]},
    ),
    "companion.lazy_training.lazy.constants.QuadraticMap.vjp": lambda: (PARABOLA, {"parameters": [0.5], "x": [[0.1]]}),
    "companion.lazy_training.lazy.constants.linearisation_gap": lambda: {"constants": CONSTANTS, "times": TIMES},
    "companion.lazy_training.lazy.constants.measure": lambda: {
        "model": NETWORK, "parameters": _start(NETWORK), "x": X, "y": Y, "lipschitz": 0.1,
    },
    "companion.lazy_training.tangent_kernel.network.Network": lambda: {"widths": (2, 3, 1), "activation": ERF, "bias": 0.1},
    "companion.lazy_training.tangent_kernel.network.Network.layers": lambda: (NETWORK, {"parameters": _start(NETWORK)}),
    "companion.lazy_training.tangent_kernel.network.Network.outputs": lambda: (NETWORK, {"parameters": _start(NETWORK), "x": X}),
    "companion.lazy_training.tangent_kernel.network.Network.tangent_kernel": lambda: (
        NETWORK, {"parameters": _start(NETWORK), "x": X, "other": FRESH},
    ),
    "companion.lazy_training.tangent_kernel.network.Network.vjp": lambda: (NETWORK, {"parameters": _start(NETWORK), "x": X}),
    "companion.catapults.beyond.parameterisation.KernelEntries.critical_step": lambda: (
        KernelEntries(1.0, 0.2), {"examples": 5},
    ),
    "companion.catapults.beyond.parameterisation.kernel_entries": lambda: {
        "depth": 3, "parameterisation": "pytorch", "width": 10, "dimension": 4,
    },
    "companion.lazy_training.lazy.printed.printed_deviation_scale": lambda: {
        "samples": 3, "dimension": 4, "width": 10,
    },
    "companion.lazy_training.kernels.printed_kernel_flow": lambda: {
        "kernel": KERNEL, "targets": Y, "times": TIMES,
    },
    "companion.lazy_training.lazy.printed.printed_linearisation_gap": lambda: {
        "constants": CONSTANTS, "times": TIMES, "factor": 1.0,
    },
    "companion.lazy_training.tangent_kernel.printed.printed_tangent_kernel": lambda: {
        "network": NETWORK, "parameters": _start(NETWORK), "x": X,
    },
    "companion.lazy_training.tangent_kernel.printed.printed_weight_movement": lambda: {
        "network": NETWORK, "before": _start(NETWORK), "after": 2 * _start(NETWORK),
    },
    "companion.lazy_training.tangent_kernel.width.antipodal_mean": lambda: {"width": 5},
    "kernels.recursion.infinite_width": lambda: {
        "x": X, "other": FRESH, "depth": 2, "activation": TANH, "bias": 0.1, "order": 20,
    },
    "companion.lazy_training.tangent_kernel.width.random_covariances": lambda: {
        "x": X, "widths": [3, 4], "activation": RELU, "bias": 0.1, "replicas": 2, "rng": 0,
    },
    "companion.lazy_training.tangent_kernel.width.width_corrections": lambda: {
        "x": X, "depth": 2, "activation": TANH, "bias": 0.1, "order": 20,
    },
    "kernels.training.compare": lambda: {
        "model": NETWORK, "start": _start(NETWORK), "x": X, "y": Y, "times": TIMES,
        "step_size": 0.5, "fresh": FRESH, "keep": True, "rtol": 1e-4, "atol": 1e-6,
    },
    "companion.lazy_training.tangent_kernel.ensembles.rectifier_drift": lambda: {"own": 1.0, "cross": 0.5, "coefficient": 2.0},
    "companion.lazy_training.tangent_kernel.ensembles.wide_ensemble": lambda: {
        "x": X, "y": Y, "fresh": FRESH, "times": TIMES, "depth": 2, "activation": ERF,
        "bias": 0.1, "step_size": 0.1, "last_layer": False,
    },
    "kernels.two_layer.TwoLayer": lambda: {
        "dimension": 2, "width": 4, "activation": ERF, "scale": 2.0,
    },
    "kernels.two_layer.TwoLayer.gaussian_lipschitz": lambda: (
        TWO_LAYER, {"samples": 3, "miss": 1e-3},
    ),
    "kernels.two_layer.TwoLayer.jacobian_distance": lambda: (
        TWO_LAYER,
        {"parameters": _start(TWO_LAYER), "other": 2 * _start(TWO_LAYER), "x": X},
    ),
    "kernels.two_layer.TwoLayer.lipschitz": lambda: (TWO_LAYER, {"x": X}),
    "kernels.two_layer.TwoLayer.outputs": lambda: (
        TWO_LAYER, {"parameters": _start(TWO_LAYER), "x": X},
    ),
    "kernels.two_layer.TwoLayer.tangent_kernel": lambda: (
        TWO_LAYER, {"parameters": _start(TWO_LAYER), "x": X, "other": FRESH},
    ),
    "kernels.two_layer.TwoLayer.vjp": lambda: (
        TWO_LAYER, {"parameters": _start(TWO_LAYER), "x": X},
    ),
}  # fmt: skip
REASONS = {
    f"kernels.arc_cosine.{name}": "a compiled loop on what its callers have checked"
    for name in ("fill", "mirror", "recur")
}
LENIENT = {
    # A pullback keeps its inputs by reference, and layers are views of the parameters.
    "kernels.two_layer.TwoLayer.vjp": {"x": ["shared"]},
    "companion.lazy_training.tangent_kernel.network.Network.layers": {"parameters": ["shared"]},
    "companion.lazy_training.tangent_kernel.network.Network.vjp": {
        "parameters": ["shared"], "x": ["shared"],
    },
}  # fmt: skip
CASES = collect(
    [
        "kernels",
        "companion.lazy_training.lazy",
        "companion.lazy_training.tangent_kernel",
        "companion.catapults.beyond.parameterisation",
        "companion.lazy_training.kernels",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
