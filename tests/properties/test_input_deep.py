"""Bad input for deep networks: builders, graphs, Hessians, tangent kernels and their training."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from harness import Case, collect, without_example

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
import networkx as nx

from companion.lazy_training.beyond import sketch as beyond
from companion.lazy_training.linearity import linearise
from companion.lazy_training.linearity.linearise import Linearisation
from traindyn import deep
from traindyn.deep.taylor import TaylorModel

NETWORK = deep.fully_connected([2, 3, 2, 1])
TWO_LAYERS = deep.fully_connected([2, 3, 1])
RECTIFIED = deep.fully_connected([2, 3, 1], activation="relu")
MODEL = deep.perceptron([2, 3, 1])
POINT, POINTS, LABELS = [1.0, 0.5], [[1.0, 0.5], [0.2, -1.0]], [0.5, -0.5]
MATRIX = [[1.0, 0.5], [0.2, 2.0], [0.3, 0.1]]
SERIES = [[[1.0, 0.5], [0.2, 2.0]], [[0.1, 0.3], [0.4, 1.0]]]


@cache
def _weights(network: deep.Network = NETWORK) -> Any:
    return network.initial(rng=0)


@cache
def _start() -> Any:
    return MODEL.initial(rng=0)


@cache
def _taylor() -> TaylorModel:
    return TaylorModel(MODEL, _start())


@cache
def _linear() -> Linearisation:
    return linearise.linearise(NETWORK, _weights())


@cache
def _loss() -> deep.LossHessian:
    return deep.LossHessian(MODEL.apply)


def _graph() -> nx.DiGraph:
    return nx.DiGraph([("x", "u"), ("x", "v"), ("u", "f"), ("v", "f")])


def _of(network: deep.Network, **more: Any) -> dict[str, Any]:
    return {"network": network, "weights": _weights(network), "point": POINT, **more}


def _stepped(model: Any) -> tuple[Any, dict[str, Any]]:
    return model, {"weights": _start(), "batch": MODEL.prepare(POINTS)}


EXAMPLES = {
    "companion.lazy_training.kernel_change.blocks.hessian_blocks": lambda: _of(
        NETWORK, output=0, tolerance=1e-3, max_products=20, rng=0,
    ),
    "companion.lazy_training.kernel_change.blocks.last_blocks": lambda: _of(NETWORK, output=0),
    "companion.lazy_training.kernel_change.blocks.two_layer_vector_norm": lambda: _of(TWO_LAYERS),
    "companion.lazy_training.kernel_change.blocks.vector_norm": lambda: _of(
        TWO_LAYERS, starts=1, tolerance=1e-3, max_rounds=3, rng=0,
    ),
    "deep.builders.convolutional": lambda: {
        "channels": [1, 2], "positions": 4, "kernel": 3, "outputs": 1, "activation": "tanh",
        "output_activation": "identity",
    },
    "deep.builders.densenet": lambda: {
        "sizes": [2, 3, 1], "activation": "tanh", "output_activation": "identity",
        "read_inputs": True,
    },
    "deep.builders.drop_edges": lambda: {"network": NETWORK, "keep": 0.5, "rng": 0},
    "deep.builders.fully_connected": lambda: {
        "sizes": [2, 3, 1], "activation": "tanh", "output_activation": "identity",
    },
    "companion.lazy_training.kernel_change.narrow.narrow": lambda: {"network": NETWORK, "sizes": [2, 1]},
    "deep.builders.residual": lambda: {
        "sizes": [2, 3, 1], "activation": "tanh", "output_activation": "identity",
    },
    "deep.builders.with_bottlenecks": lambda: {
        "network": NETWORK, "depth": 2, "count": 1, "shared": False, "rng": 0,
    },
    "deep.critical.LossHessian.curvature": lambda: (
        _loss(),
        {
            "weights": _start(), "batch": np.array(POINTS), "labels": LABELS,
            "start": np.ones(9), "tolerance": 1e-3, "rng": 0,
        },
    ),
    "deep.critical.LossHessian.operator": lambda: (
        _loss(), {"weights": _start(), "batch": np.array(POINTS), "labels": LABELS},
    ),
    "companion.lazy_training.beyond.graphs.from_graph": lambda: {"graph": _graph(), "activation": "tanh"},
    "companion.lazy_training.beyond.graphs.influences": lambda: {"graph": _graph(), "output": "f"},
    "companion.lazy_training.beyond.graphs.inspect": lambda: {"graph": _graph(), "limit": 2.0},
    "companion.lazy_training.beyond.graphs.linearity": lambda: {
        "family": beyond.sketch("x*2 -> a*m -> y*1").graph, "sizes": [2, 4, 8], "least": 0.25,
    },
    "companion.lazy_training.linearity.ball.hessian_ball": lambda: _of(
        TWO_LAYERS, radius=1.0, points=1, along=np.ones((9, 1)), outputs=[0], tolerance=1e-3,
        rng=0,
    ),
    "companion.lazy_training.linearity.certificate.hessian_bound": lambda: _of(
        TWO_LAYERS, radius=1.0, slope=1.0, curvature=0.8, output=0,
    ),
    "companion.lazy_training.linearity.oscillating.aligned": lambda: {
        "weights": MATRIX, "values": np.ones(np.shape(MATRIX)[1]), "signs": np.ones(len(MATRIX)), "frequency": 9.0,
    },
    "companion.lazy_training.linearity.oscillating.oscillating": lambda: {"frequency": 9.0},
    "deep.hessian.hessian_norms": lambda: _of(
        TWO_LAYERS, outputs=[0], tolerance=1e-3, max_products=30, vectors=False, rng=0,
    ),
    "deep.hessian.hessian_operator": lambda: _of(NETWORK, output=0),
    "deep.hessian.hessian_product": lambda: _of(
        NETWORK, vectors=np.ones((14, 2)), output=0,
    ),
    "deep.hessian.two_layer_eigenvalues": lambda: _of(TWO_LAYERS),
    "deep.models.Model.gradient": lambda: (
        MODEL, _stepped(MODEL)[1] | {"labels": np.array(LABELS)},
    ),
    "deep.models.Model.initial": lambda: (MODEL, {"scale": 1.0, "biases": "zero", "rng": 0}),
    "deep.models.Model.input_gradients": lambda: _stepped(MODEL),
    "deep.models.Model.outputs": lambda: _stepped(MODEL),
    "deep.models.Model.tangent_kernel": lambda: _stepped(MODEL),
    "deep.models.image_network": lambda: {
        "shape": [4, 4], "channels": [2], "filter": 3, "outputs": 1, "activation": "relu",
        "biases": False, "parameterisation": "ntk",
    },
    "deep.models.perceptron": lambda: {
        "sizes": [2, 3, 1], "activation": "relu", "biases": False, "parameterisation": "ntk",
    },
    "companion.catapults.sgd.transformer.vision_transformer": lambda: {
        "shape": [4, 4], "patch": 2, "width": 4, "heads": 2, "depth": 1, "outputs": 1,
        "activation": "relu", "parameterisation": "ntk",
    },
    "deep.models.wide_resnet": lambda: {
        "shape": [4, 4], "depth": 10, "widen": 1, "base": 2, "outputs": 1, "activation": "relu",
        "parameterisation": "ntk",
    },
    "deep.network.Network.check_output": lambda: (NETWORK, {"output": 0}),
    "deep.network.Network.check_point": lambda: (NETWORK, {"point": POINT}),
    "deep.network.Network.head": lambda: (NETWORK, {"depth": 2}),
    "deep.network.Network.neurons": lambda: (NETWORK, {"weights": _weights(), "points": POINTS}),
    "deep.network.Network.values": lambda: (NETWORK, {"weights": _weights(), "points": POINTS}),
    "companion.lazy_training.kernel_change.propagation.gradient_moment_bound": lambda: {"constant": 0.5, "power": 1.0, "depth": 3},
    "companion.lazy_training.kernel_change.propagation.gradient_squares": lambda: {
        "network": NETWORK, "draws": 2, "point": POINT, "rng": 0,
    },
    "companion.lazy_training.kernel_change.propagation.incoming_norms": lambda: _of(NETWORK, output=0),
    "companion.lazy_training.kernel_change.propagation.matrix_variances": lambda: _of(NETWORK, output=0),
    "companion.lazy_training.kernel_change.propagation.relu_gradient_moment": lambda: {"network": RECTIFIED, "point": POINT},
    "companion.lazy_training.beyond.sketch.Sketch.linearity": lambda: (
        beyond.sketch("x*2 -> a*m -> y*1"), {"sizes": [2, 4, 8], "least": 0.25},
    ),
    "companion.lazy_training.beyond.sketch.Sketch.network": lambda: (
        beyond.sketch("x*2 -> a*m -> y*1"), {"m": 3, "activation": "tanh"},
    ),
    "companion.lazy_training.beyond.spectrum.TwoLayerSpectrum": lambda: {"activation": "tanh", "square": 1.0, "signs": True},
    "companion.lazy_training.linearity.tails.columns_threshold": lambda: {
        "matrices": SERIES, "radius": 1.0, "probability": 0.1,
    },
    "companion.lazy_training.linearity.tails.linear_threshold": lambda: {"vector": POINT, "radius": 1.0, "probability": 0.1},
    "companion.lazy_training.kernel_change.tails.printed_series_threshold": lambda: {
        "matrices": SERIES, "radius": 1.0, "probability": 0.1,
    },
    "companion.lazy_training.linearity.tails.product_supremum": lambda: {"left": MATRIX, "right": MATRIX, "radius": 1.0},
    "companion.lazy_training.kernel_change.tails.series_threshold": lambda: {
        "matrices": SERIES, "radius": 1.0, "probability": 0.1,
    },
    "companion.lazy_training.linearity.tails.vector_threshold": lambda: {"matrix": MATRIX, "radius": 1.0, "probability": 0.1},
    "companion.lazy_training.linearity.linearise.Linearisation.deviation": lambda: (
        _linear(), {"weights": 2 * _weights(), "points": POINTS},
    ),
    "companion.lazy_training.linearity.linearise.Linearisation.values": lambda: (
        _linear(), {"weights": 2 * _weights(), "points": POINTS},
    ),
    "deep.tangent.gradients": lambda: {
        "network": NETWORK, "weights": _weights(), "points": POINTS, "output": 0,
    },
    "companion.lazy_training.linearity.linearise.linearise": lambda: {"network": NETWORK, "weights": _weights()},
    "deep.tangent.tangent_kernel": lambda: {
        "network": NETWORK, "weights": _weights(), "points": POINTS, "output": 0,
    },
    "deep.taylor.TaylorModel": lambda: {"model": MODEL, "expansion": _start(), "kind": "linear"},
    "deep.taylor.TaylorModel.gradient": lambda: (
        _taylor(), _stepped(MODEL)[1] | {"labels": np.array(LABELS)},
    ),
    "deep.taylor.TaylorModel.input_gradients": lambda: _stepped(_taylor()),
    "deep.taylor.TaylorModel.outputs": lambda: _stepped(_taylor()),
    "deep.taylor.TaylorModel.prepare": lambda: (_taylor(), {"inputs": POINTS}),
    "deep.taylor.TaylorModel.tangent_kernel": lambda: _stepped(_taylor()),
    "companion.lazy_training.kernel_change.train.descend": lambda: {
        "network": NETWORK, "start": _weights(), "points": POINTS, "labels": LABELS,
        "step_size": 0.1, "steps": 2, "stop": 0.01, "every": 1, "output": 0,
    },
    "deep.two_layer.TwoLayerNorm": lambda: {"activation": "tanh", "width": 50.0, "square": 1.0},
}  # fmt: skip
_RECORD = "a record of results"
_UPDATE = "the update of train, at the bottom of its loop"
REASONS = {
    "deep.architectures": "made by the functions of models, which check; called in traced code",
    "companion.catapults.sgd.transformer.Transformer": "made by vision_transformer, which checks",
    "deep.connections": "what a layer of a builder does, in traced code",
    "companion.lazy_training.beyond.graphs.Edges": "what a layer of a builder does, in traced code",
    "companion.lazy_training.kernel_change.blocks.HessianBlocks": _RECORD,
    "companion.lazy_training.kernel_change.blocks.VectorNorm": _RECORD,
    "companion.lazy_training.beyond.graphs.GraphReport": _RECORD,
    "companion.lazy_training.beyond.graphs.Linearity": _RECORD,
    "companion.lazy_training.linearity.ball.BallNorms": _RECORD,
    "companion.lazy_training.linearity.certificate.BallBound": _RECORD,
    "deep.hessian.HessianNorms": _RECORD,
    "deep.models.Model.apply": "what JAX traces and differentiates",
    "deep.models.Model.evaluate": "what JAX traces and differentiates",
    "deep.models.Model.gram": "what JAX traces and differentiates",
    "deep.models.Model.descend": _UPDATE,
    "deep.models.Model.descend_many": _UPDATE,
    "deep.network.Layer": "what builders put networks together from",
    "deep.network.Network": "put together by builders",
    "companion.lazy_training.kernel_change.propagation.IncomingNorms": _RECORD,
    "companion.lazy_training.kernel_change.propagation.MatrixVariances": _RECORD,
    "companion.lazy_training.beyond.sketch.Group": "what sketch reads from a text",
    "companion.lazy_training.beyond.sketch.Sketch": "what sketch reads from a text",
    "deep.taylor.TaylorModel.descend": _UPDATE,
    "deep.taylor.TaylorModel.descend_many": _UPDATE,
    "companion.lazy_training.linearity.linearise.Linearisation": "made by linearise",
    "companion.lazy_training.kernel_change.train.Descent": _RECORD,
}
# What train calls at every step looks at shapes only: entries are checked where a run begins, and
# those of a run that diverges are seen in its loss.
_STEP = {"batch": [f"inputs: {label}" for label in ("nan", "inf", "words")]}
_GRADIENT = {**_STEP, "labels": ["nan", "inf"]}
LENIENT: dict[str, dict[str, list[str]]] = {
    f"{model}.{name}": _GRADIENT if name == "gradient" else _STEP
    for model in ("deep.models.Model", "deep.taylor.TaylorModel")
    for name in ("gradient", "input_gradients", "outputs", "tangent_kernel")
}
# The message has the number of the line.
LENIENT["companion.lazy_training.beyond.sketch.sketch"] = {"text": ["word"]}
# Data that may be large are kept by reference; a check hands on what it has looked at.
LENIENT["deep.critical.LossHessian.operator"] = {"batch": ["shared"], "labels": ["shared"]}
LENIENT["deep.network.Network.check_point"] = {"point": ["shared"]}
CASES = collect(
    [
        "deep",
        "companion.catapults.optimisers.rules",
        "companion.catapults.optimisers.stretches",
        "companion.catapults.sgd.transformer",
        "companion.lazy_training.beyond.graphs",
        "companion.lazy_training.beyond.spectrum",
        "companion.lazy_training.kernel_change.tails",
        "companion.lazy_training.kernel_change.train",
        "companion.lazy_training.kernel_change.narrow",
        "companion.lazy_training.linearity",
        "companion.lazy_training.beyond.sketch",
        "companion.lazy_training.kernel_change.blocks",
        "companion.lazy_training.kernel_change.propagation",
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
