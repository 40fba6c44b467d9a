"""Bad input for the problems: refused by the argument's name."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from harness import FIXED, Case, collect, judge_drawn, without_example
from hypothesis import given
from hypothesis import strategies as st

from companion.alignment.beyond.spectra import limit_spectra
from companion.alignment.transitions import edge_law
from companion.alignment.xor_alignment import escape
from companion.effective_dynamics.batches_and_momentum import HeavyBall
from companion.effective_dynamics.other_inputs.images import Resampled
from companion.effective_dynamics.other_inputs.matrix import SpikedMatrix
from companion.effective_dynamics.other_inputs.pairs import PairedMixture, PairStatistics
from companion.effective_dynamics.other_steps.adam import AdamPoint, AdamStatistics, AdamSteps
from companion.effective_dynamics.other_steps.projected import ProjectedSteps
from companion.effective_dynamics.other_steps.rmsprop import RmspropSteps
from companion.effective_dynamics.other_steps.sign import SignSteps
from companion.foundations.double_descent.risk import LinearModel
from companion.foundations.implicit_bias import margin, separable
from companion.foundations.interpolation import pointwise, smoothing
from companion.sample_complexity import information_exponent as single_index
from companion.sample_complexity.information_exponent import search
from traindyn.gaussian import gauss_hermite
from traindyn.problems import chain, k_gmm, multi_index, spiked, two_layer
from traindyn.problems.clouds.direction import Weights
from traindyn.problems.clouds.laws import Law
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.projection_model import Local, ProjectionModel
from traindyn.problems.regression import least_squares


def _with_samples(problem: Any) -> dict[str, Any]:
    """Return a problem, a point and what goes with them."""
    point = problem.initial(rng=1)
    sample = problem.sample(6, rng=2)
    return {
        "problem": problem,
        "point": point,
        "sample": sample,
        "inputs": sample.inputs,
        "statistics": problem.statistics(point),
        "base": problem.statistics(point),
        "n": 6,
        "rng": 3,
        "matrix": "hessian",
        "c_delta": 0.5,
        "step_size": 0.05,
    }


def _k_gmm() -> dict[str, Any]:
    words = _with_samples(k_gmm.KGaussianMixture.orthonormal(3, 8, precision=5.0, ridge=0.1))
    statistics = words["statistics"]
    return {
        **words,
        "block": (0, 0),
        "rule": gauss_hermite(3, 4),
        "first": statistics,
        "second": statistics,
        "path": k_gmm.Statistics(*(np.stack([part, part]) for part in statistics)),
        "m": statistics.m,
        "k": 3,
        "precision": 5.0,
        "sample_ratio": 2.0,
        "diagonal": [0.1, 0.2, 0.3],
        "t": 1.0,
        "label": 0,
        "index": 1,
        "weight": lambda probabilities, label: probabilities[..., 0],
        "state": chain.reduced(words["problem"], statistics).state(),
    }


def _transitions() -> dict[str, Any]:
    """Return two classes at statistics whose first outlier appears between the two precisions."""
    problem = k_gmm.KGaussianMixture.orthonormal(2, 8, precision=4.0, ridge=0.1)
    statistics = k_gmm.Statistics(0.5 * (2 * np.eye(2) - 1), 0.5 * np.eye(2))
    law = edge_law(problem, statistics, "hessian", order=4)
    return {
        "problem": problem,
        "statistics": statistics,
        "matrix": "hessian",
        "a": 0,
        "order": 4,
        "sample_ratio": 0.4,
        "rank": 0,
        "low": 1.0,
        "high": 20.0,
        "gamma": 0.5,
        "times": [0.0, 1.0, 2.0],
        "ratios": [0.5, 0.2, 0.6],
        "weights": law.weights,
        "masses": law.masses,
        "spikes": law.spikes,
        "supremum": 0.25,
        "self": law,
    }


def _two_layer() -> dict[str, Any]:
    words = _with_samples(two_layer.TwoLayerMixture.xor(4, 8, precision=5.0, ridge=0.1))
    problem, statistics = words["problem"], words["statistics"]
    times = [0.0, 0.5, 1.0]
    return {
        **words,
        "block": (0, 0),
        "rule": gauss_hermite(4, 3),
        "times": times,
        "state": chain.reduced(problem, statistics).state(),
        "i": 0,
        "j": 1,
        "k": 2,
        "centroid": 0,
        "width": 4,
        "dimension": 8,
        "precision": 5.0,
        "ridge": 0.1,
        "level": 0.5,
        "slope": 0.3,
        "m": 0.4,
        "square": 0.7,
        "corrector": 0.1,
        "draws": 5,
        "noise_parts": np.ones((4, 3)),
        "forward": problem.forward(words["point"], words["sample"]),
        "spectra": two_layer.spectra.FixedPointSpectra(0.05, 5.0),
        "limit": two_layer.spectra.LimitSpectra(0.05, (True, True, False, True)),
    }


def _path(words: dict[str, Any]) -> two_layer.Statistics:
    """Return the statistics at three times."""
    return two_layer.Statistics(*(np.stack([part] * 3) for part in words["statistics"]))


def _at_rest() -> dict[str, Any]:
    """Return a fixed point of the limit, and what else its diffusion needs."""
    problem = two_layer.TwoLayerMixture.xor(4, 8, precision=np.inf, ridge=0.1)
    place = two_layer.equilibria.FixedSet(problem, (0, 1, 2, 3))
    return {"problem": problem, "base": place.point(), "c_delta": 0.5}


def _projection() -> dict[str, Any]:
    local = Local(
        lambda z, u, label: 0.5 * (z[0] - z[1]) ** 2,
        lambda z, u, label: np.array([z[0] - z[1], z[1] - z[0]]),
        lambda z, u, label: np.array([[1.0, -1.0], [-1.0, 1.0]]),
    )
    problem = ProjectionModel(
        local, [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], 5.0, 8, ridge=0.1, scalars=[0.3]
    )
    words = _with_samples(problem)
    state = chain.reduced(problem, words["statistics"]).state()
    return {**words, "block": (0, 0), "rule": gauss_hermite(3, 3), "state": state}


def _spiked() -> dict[str, Any]:
    problem = spiked.SpikedTensor(order=3, dimension=6, signal=2.0, ridge=0.1)
    point = problem.initial(rng=1)
    return {
        "problem": problem,
        "point": point,
        "statistics": problem.statistics(point),
        "tensors": problem.observations(2, rng=2),
        "gradients": problem.gradients(point, 2, rng=2),
        "count": 2,
        "rng": 3,
        "step_size": 0.05,
        "c_delta": 0.5,
        "scaled_signal": 2.0,
        "kappa": 0.5,
        "ridge": 0.1,
        "start": 0.5,
        "times": [0.0, 0.5, 1.0],
        "state": chain.reduced(problem, problem.statistics(point)).state(),
    }


def _multi_index() -> dict[str, Any]:
    problem = multi_index.MultiIndex(multi_index.targets.two_layer_teacher((1.0, -0.5)))
    data = problem.sample(5, 4, rng=1)
    neurons = problem.initial(4, rng=2)
    return {
        "problem": problem,
        "target": problem.target,
        "n": 5,
        "d": 4,
        "rng": 3,
        "preactivations": data.inputs @ neurons,
        "labels": data.labels,
        "gram": np.eye(1),
        "overlap": np.full((1, 2), 0.3),
        "noise": 0.1,
        "basis": np.eye(2),
        "name": "basis",
        "rows": 2,
    }


def _single_index() -> dict[str, Any]:
    problem = single_index.models.phase_retrieval(20)
    points = np.array([0.3, -0.2])
    return {
        "problem": problem,
        "mixture": single_index.models.BinaryMixture(20, 0.1),
        "link": single_index.links.hermite(2),
        "escape": search.escape_law(problem, 0.5, c_delta=0.01),
        "explosion": search.Explosion(4, 1.0, 0.5, 0.2),
        "m": 0.3,
        "n": 5,
        "p": 4.0,
        "rng": 3,
        "delta": 0.1,
        "c_delta": 0.1,
        "alpha": 0.5,
        "scale": 0.2,
        "count": 3,
        "steps": 4,
        "replicas": 2,
        "factor": 2.0,
        "dimension": 20,
        "field": 0.1,
        "first": [1.0, 0.5],
        "second": [0.5, 0.25],
        "times": [0.1, 0.2],
        "t": points,
        "y": np.array([1.0, -1.0]),
        "z": points,
        "order": 4,
        "pull": 1.0,
        "restoring": 0.5,
        "noise": 0.2,
    }


def _regression() -> dict[str, Any]:
    x = np.array([[1.0, 0.2], [0.5, 1.0], [-1.0, 0.3]])
    y = np.array([1.0, 1.0, -1.0])
    return {
        "x": x,
        "y": y,
        "squares": least_squares.LeastSquares(x, y),
        "solution": margin.max_margin(x, y),
        "classifier": separable.Classifier(x, y),
        "kernel": smoothing.PowerKernel(2.0),
        "design": pointwise.LocalDesign.uniform(1),
        "theta": [0.1, 0.2],
        "w": [0.1, 0.2],
        "weights": np.array([[0.1, 0.2], [0.3, 0.5]]),
        "times": [1.0, 2.0],
        "scale": 2.0,
        "step_size": 0.1,
        "dimension": 2,
        "sharpness": 0.5,
        "power": 1,
        "n": 10,
        "bandwidth": 0.5,
        "rng": 3,
        "deviation": 0.1,
        "expected": 5.0,
        "probability": 0.5,
        "smoothness": 1.0,
        "bias": 0.1,
        "k": 3,
        "noise": 0.2,
    }


def _ridgeless() -> dict[str, Any]:
    model = LinearModel([1.0, 0.5, 0.2], 0.3)
    inputs, targets = model.sample(5, rng=1)
    return {
        "model": model,
        "features": 2,
        "estimate": [0.9, 0.4, 0.1],
        "n": 5,
        "inputs": inputs,
        "targets": targets,
        "ridge": 0.1,
        "signal": 1.0,
        "noise": 0.3,
    }


def _chain() -> dict[str, Any]:
    words = _two_layer()
    return {
        **words,
        "chain": chain.direct(words["problem"], words["point"]),
        "block": PopulationBlock(0.5, np.eye(4)[:, :2], np.eye(2)),
        "vectors": np.ones((4, 2)),
    }


def _volatile() -> dict[str, Any]:
    """Return what the covariance of a step of three classes takes."""
    words = _k_gmm()
    kept = {name: words[name] for name in ("problem", "statistics", "c_delta")}
    return {**kept, "rule": gauss_hermite(6, 2)}


def _direct(words: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return arguments with a rule for the integral over all inputs."""
    return {**{name: words[name] for name in names}, "rule": gauss_hermite(8, 1)}


def _over_neurons(*names: str) -> dict[str, Any]:
    """Return arguments with a rule for signal and neurons."""
    words = _two_layer()
    return {**{name: words[name] for name in names}, "rule": gauss_hermite(6, 2)}


def _binary() -> dict[str, Any]:
    """Return the binary mixture without noise, which some of the printed formulas are about."""
    problem = two_layer.TwoLayerMixture.binary(2, 8, precision=np.inf, ridge=0.1)
    finite = two_layer.TwoLayerMixture.binary(2, 8, precision=5.0, ridge=0.1)
    return {"problem": problem, "statistics": finite.statistics(finite.initial(rng=1))}


def _xor() -> dict[str, Any]:
    problem = two_layer.TwoLayerMixture.xor(4, 8, precision=5.0, ridge=0.1)
    statistics = problem.draw_initial_statistics(rng=1)
    rule = gauss_hermite(6, 2)
    return {"problem": problem, "statistics": statistics, "matrix": "hessian", "rule": rule}


def _reduced(words: dict[str, Any]) -> Any:
    """Give the state of the chain that stands for the statistics."""
    problem = words["problem"]
    return problem, {"state": problem.reduced_state(words["statistics"])}


def _batches() -> dict[str, Any]:
    """Return matrix PCA without ridge, which the largest stable step is about."""
    problem = spiked.SpikedTensor(order=2, dimension=6, signal=2.0)
    return {
        "problem": problem,
        "statistics": spiked.Statistics(np.array(0.4), np.array(0.7)),
        "start": spiked.Statistics(np.array(0.4), np.array(0.7)),
        "times": [0.0, 0.01],
        "step_size": 0.01,
        "batch": 3,
        "momentum": 0.5,
        "replicas": 2,
        "ratio": 0.3,
        "rng": 1,
    }


def _heavy() -> tuple[HeavyBall, dict[str, Any]]:
    """Return SGD with batches and momentum, and what its methods take."""
    words = _batches()
    heavy = HeavyBall(words["problem"], batch=3, momentum=0.5)
    point = heavy.initial(rng=1)
    return heavy, {"point": point, "statistics": words["statistics"], "rng": 1}


def _of_heavy(*names: str) -> tuple[HeavyBall, dict[str, Any]]:
    heavy, words = _heavy()
    return heavy, {name: words[name] for name in names}


#: Classifiers of clouds and matrices with any inputs and steps, by the part of the library.
_INPUTS = "companion.effective_dynamics.other_inputs"
_STEPS = "companion.effective_dynamics.other_steps"


def _other_inputs() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the problems with other inputs or steps, and what their methods take."""
    spread, here = np.full(30, 30**-0.5), spiked.Statistics(np.array(0.4), np.array(0.7))
    pairs = np.tile([1.0, 0.3], 20) / np.sqrt(1.09 * 20)
    parts = PairStatistics(np.array([0.4, 0.3]), np.array([0.7, 0.2]))
    rows = np.random.default_rng(0).normal(size=(12, 3))
    words = {"rng": 1, "c_delta": 0.5, "times": [0.0, 0.2], "step_size": 0.1, "order": 9}
    words |= {"shift": [0.2, -0.3], "margin": [0.5, -1.0]}
    matrices = SpikedMatrix(spread, signal=2.0)
    clouds, points = Mixture(spread), Weights(np.linspace(0, 1, 30))
    moving = AdamPoint(points.w, np.zeros(30), np.ones(30))
    images = Resampled(rows, np.tile([1.0, -1.0], 6))
    found = {
        "problems.clouds.laws.Law": (Law("sparse", 0.2), None, None),
        "problems.clouds.mixture.Mixture": (clouds, here, points),
        "problems.clouds.mixture.Clouds": (clouds, None, None),
        f"{_INPUTS}.pairs.PairedMixture": (
            PairedMixture(pairs),
            parts,
            Weights(np.linspace(0, 1, 40)),
        ),
        f"{_INPUTS}.matrix.SpikedMatrix": (matrices, here, points),
        f"{_INPUTS}.images.Resampled": (images, None, Weights(np.ones(3))),
        f"{_STEPS}.sign.SignSteps": (SignSteps(clouds, 2), here, points),
        f"{_STEPS}.adam.AdamSteps": (
            AdamSteps(clouds),
            AdamStatistics(*here, np.array(0.3)),
            moving,
        ),
        f"{_STEPS}.rmsprop.RmspropSteps": (RmspropSteps(clouds, 0.6), here, moving),
        f"{_STEPS}.projected.ProjectedSteps": (ProjectedSteps(clouds, "rest"), here, points),
    }
    return {
        name: (problem, {**words, "statistics": statistics, "point": point})
        for name, (problem, statistics, point) in found.items()
    }


def _of_other_inputs(name: str, *names: str) -> tuple[Any, dict[str, Any]]:
    problem, words = _other_inputs()[name]
    return problem, {each: words[each] for each in names}


def _clouds() -> dict[str, Any]:
    """Return two small classes of inputs, and pictures of four pixels on a side."""
    return {
        "inputs": np.random.default_rng(0).normal(size=(12, 16)),
        "labels": np.tile([0, 1], 6),
        "side": 4,
        "components": 2,
    }


def _steps() -> dict[str, Any]:
    """Return what classifiers of clouds are made of."""
    return {
        "mean": np.full(30, 30**-0.5),
        "inputs": Mixture(np.full(30, 30**-0.5)),
        "part": "rest",
        "batch": 2,
        "decay": 0.6,
        "kind": "sparse",
        "parameter": 0.2,
    }


_MARKED = {
    "initial": ("rng",),
    "place": ("statistics", "rng"),
    "statistics": ("point",),
}
_CLASSIFIER = {**_MARKED, "drift": ("statistics", "c_delta")}
_OTHER: dict[str, dict[str, tuple[str, ...]]] = {
    "problems.clouds.laws.Law": {"nodes": ("order",), "sign_mean": ("shift",)},
    "problems.clouds.mixture.Mixture": {
        **_CLASSIFIER,
        "volatility": ("statistics", "c_delta"),
    },
    "problems.clouds.mixture.Clouds": {
        "initial": ("rng",),
        "response": ("margin",),
        "slope": ("margin",),
    },
    f"{_INPUTS}.matrix.SpikedMatrix": _MARKED,
    f"{_INPUTS}.pairs.PairedMixture": _CLASSIFIER,
    f"{_INPUTS}.images.Resampled": {
        "initial": ("rng",),
        "statistics": ("point",),
        "follow": ("times", "step_size"),
    },
    f"{_STEPS}.sign.SignSteps": {**_CLASSIFIER, "averages": ("statistics",)},
    f"{_STEPS}.adam.AdamSteps": _CLASSIFIER,
    f"{_STEPS}.rmsprop.RmspropSteps": {**_CLASSIFIER, "averages": ("statistics",)},
    f"{_STEPS}.projected.ProjectedSteps": {**_CLASSIFIER, "leading": ("statistics",)},
}

EXAMPLES: dict[str, Any] = {
    "companion.effective_dynamics.other_steps.margin.margins": lambda: {
        "statistics": spiked.Statistics(np.array(0.4), np.array(0.7)),
        "precision": 2.0,
    },
    "problems.clouds.direction.unit": lambda: {
        "name": "vector",
        "vector": [0.6, 0.8],
    },
    "companion.effective_dynamics.other_inputs.images.Resampled": lambda: {
        "inputs": _clouds()["inputs"],
        "signs": np.tile([1.0, -1.0], 6),
    },
    **{
        f"{kind}.{method}": partial(_of_other_inputs, kind, *names)
        for kind, methods in _OTHER.items()
        for method, names in methods.items()
    },
    "problems.k_gmm.mixture.KGaussianMixture.reduced_statistics": lambda: _reduced(_k_gmm()),
    "problems.projection_model.ProjectionModel.reduced_statistics": lambda: _reduced(_projection()),
    "problems.two_layer.mixture.TwoLayerMixture.reduced_statistics": lambda: _reduced(_two_layer()),
    "companion.effective_dynamics.batches_and_momentum.HeavyBall.rest": lambda: (
        _heavy()[0],
        {"point": _batches()["problem"].initial(rng=1)},
    ),
    "companion.effective_dynamics.batches_and_momentum.HeavyBall.place": lambda: _of_heavy(
        "statistics"
    ),
    "companion.effective_dynamics.batches_and_momentum.HeavyBall.initial": lambda: _of_heavy("rng"),
    "companion.effective_dynamics.batches_and_momentum.HeavyBall.statistics": lambda: _of_heavy(
        "point"
    ),
    "companion.alignment.xor_population_matrices.distance.network_distance": _xor,
    "companion.alignment.training_dynamics.dynamics.volatility": _volatile,
    "companion.alignment.population_matrices.direct_block": lambda: _direct(
        _k_gmm(), "problem", "matrix", "point", "block"
    ),
    "companion.alignment.population_matrices.direct_moment": lambda: _direct(
        _k_gmm(), "problem", "point", "weight"
    ),
    "companion.alignment.beyond.spectra.LimitSpectra.full": lambda: (
        limit_spectra(0.5, 3),
        {"matrix": "hessian"},
    ),
    "companion.foundations.interpolation.pointwise.leading_variance": lambda: {
        "expected": 5.0,
        "design": pointwise.LocalDesign.uniform(3),
        "kernel": smoothing.PowerKernel(1.0),
    },
    "companion.foundations.interpolation.smoothing.PowerKernel.integral": lambda: (
        smoothing.PowerKernel(0.5),
        {"power": 1, "dimension": 2},
    ),
    "companion.foundations.implicit_bias.printed.printed_step_size": lambda: {
        "model": _regression()["classifier"],
        "constant": 2.0,
    },
    "companion.sample_complexity.information_exponent.comparison.bihari_lasalle": lambda: {
        "t": [0.1, 1.0],
        "a": 0.1,
        "b": 0.2,
        "k": 4,
        "constant": 2.0,
    },
    "companion.sample_complexity.information_exponent.comparison.comparison_constant": lambda: {
        "b": 0.2,
        "k": 4,
    },
    "companion.sample_complexity.information_exponent.search.Explosion.cdf": lambda: (
        search.Explosion(4, 1.0, 0.5, 0.2),
        {"times": [0.0, 0.1, 0.2], "reach": 5.0, "start": 0.1},
    ),
    "companion.sample_complexity.information_exponent.search.explosion": lambda: {
        "problem": single_index.models.TeacherStudent(20, single_index.links.hermite(3)),
        "scale": 0.2,
    },
    "companion.effective_dynamics.pca.escape.escape_curve": lambda: {
        "problem": spiked.SpikedTensor(2, 20, 2.0),
        "times": [0.1, 0.5],
        "c_delta": 0.5,
        "gaussian": 1.2,
    },
    "companion.effective_dynamics.pca.printed.printed_informative": lambda: {
        "problem": spiked.SpikedTensor(3, 20, 2.0),
        "c_delta": 0.5,
    },
    "companion.alignment.xor_alignment.start.second_layer_time": lambda: {
        "problem": _two_layer()["problem"],
        "times": [0.0, 0.5, 1.0],
        "statistics": _path(_two_layer()),
        "level": 0.5,
    },
    "problems.two_layer.curvature.active_error": lambda: _over_neurons("problem", "point", "j"),
    "problems.two_layer.curvature.kink_block": lambda: _over_neurons("problem", "point", "i"),
    "problems.two_layer.curvature.loss_hessian_block": lambda: _over_neurons(
        "problem", "point", "block"
    ),
    "problems.two_layer.curvature.mixed_block": lambda: _over_neurons(
        "problem", "matrix", "point", "j"
    ),
    "problems.two_layer.curvature.population_block": lambda: _over_neurons(
        "problem", "matrix", "point", "block"
    ),
    "companion.alignment.xor_alignment.escape.escape": lambda: {
        "problem": _two_layer()["problem"],
        "times": [0.0, 0.5, 1.0],
        "statistics": _path(_two_layer()),
        "c_delta": 0.5,
    },
    "companion.alignment.xor_alignment.escape.Escape.paths": lambda: (
        escape.escape(_two_layer()["problem"], [0.0, 0.5, 1.0], _path(_two_layer()), c_delta=0.5),
        {"dimension": 8.0, "draws": 3, "rng": 3},
    ),
    "problems.two_layer.printed.printed_around": _at_rest,
    "companion.effective_dynamics.binary_mixture.printed.printed_gradient_covariance": _binary,
    "companion.alignment.xor_population_matrices.printed.class_sum": lambda: {"ridge": 0.1},
    "companion.alignment.xor_population_matrices.printed.feature_excess": lambda: {
        "m": [0.5],
        "gram": [[0.7]],
        "precision": 5.0,
    },
    "companion.alignment.xor_population_matrices.printed.fourth_moment_bound": lambda: {
        "m": [0.5],
        "gram": [[0.7]],
        "precision": 5.0,
    },
    "companion.alignment.xor_population_matrices.printed.mixed_block": lambda: _over_neurons(
        "problem", "matrix", "point", "j"
    ),
}
RECORD = "a record of results: nobody builds it by hand"
INSIDE = "called by the library at every step, on arrays it has made itself"
REASONS: dict[str, str] = {
    "problems.chain.Chain": INSIDE,
    "problems.loops": "compiled, or takes compiled functions alone",
    "problems.base.require": INSIDE,
    "problems.spiked.tensor.SpikedTensor.reduced_statistics": INSIDE,
    "problems.multi_index.hardness.Decomposition": RECORD,
    "problems.multi_index.model.MultiIndex.force": INSIDE,
    "problems.multi_index.model.MultiIndex.predict": INSIDE,
    "companion.foundations.implicit_bias.margin.MaxMargin": RECORD,
    "problems.ridgeless.Risk": RECORD,
    "companion.sample_complexity.information_exponent.passage.Decomposition": RECORD,
    "companion.sample_complexity.information_exponent.passage.Passages": RECORD,
    "companion.foundations.implicit_bias.separable.MarginLoss": "functions and a name, which are not looked at",
    "companion.sample_complexity.information_exponent.model.advance": "compiled, and takes compiled functions alone",
    "companion.alignment.xor_alignment.escape.Escape": RECORD,
    "problems.two_layer.forward.Forward": RECORD,
    "companion.effective_dynamics.binary_mixture.printed.printed_loss": "takes nothing but a set of fixed points",
}
SLOW = {"call": ("slow",)}
#: A mixture of two layers may be without noise.
_NOISELESS = {"precision": ("inf",)}
LENIENT: dict[str, Any] = {
    "problems.two_layer.mixture.TwoLayerMixture": _NOISELESS,
    "problems.two_layer.mixture.TwoLayerMixture.binary": _NOISELESS,
    # Inputs may be large, and are kept by reference; a parameter is a view of its point.
    **{
        f"problems.{name}": {"sample": ("shared",), "point": ("shared",)}
        for name in (
            "k_gmm.mixture.KGaussianMixture.factors",
            "k_gmm.mixture.KGaussianMixture.forward",
            "k_gmm.mixture.KGaussianMixture.parameter",
            "projection_model.ProjectionModel.factors",
            "projection_model.ProjectionModel.parameter",
            "two_layer.mixture.TwoLayerMixture.factors",
            "two_layer.mixture.TwoLayerMixture.forward",
            "two_layer.mixture.TwoLayerMixture.parameter",
            "chain.direct",
        )
    },
    # Columns as they were given.
    "problems.multi_index.targets.orthonormal": {"basis": ("shared",)},
    # A record of results: nobody builds it by hand.
    "problems.spiked.equilibria.Equilibrium": {
        "statistics": ("shared",),
        "eigenvalues": ("shared",),
    },
    "companion.effective_dynamics.binary_mixture.basin.success_slope": SLOW,
    "problems.two_layer.finite_equilibria.good": SLOW,
    "problems.multi_index.hardness.decompose": SLOW,
    # Of a width below four.
    "problems.two_layer.mixture.TwoLayerMixture.xor": _NOISELESS | {"width": ["warning"]},
}
VOCABULARY = {
    "problems.k_gmm": _k_gmm,
    "problems.two_layer": _two_layer,
    "problems.projection_model": _projection,
    "problems.spiked": _spiked,
    "problems.multi_index": _multi_index,
    "problems.regression": _regression,
    "problems.ridgeless": _ridgeless,
    "problems.chain": _chain,
    "problems.population_block": _chain,
    "companion.alignment.beyond": _k_gmm,
    "companion.alignment.population_matrices": _k_gmm,
    "companion.alignment.training_dynamics": _k_gmm,
    "companion.alignment.transitions": _transitions,
    "companion.alignment": _two_layer,
    "companion.effective_dynamics": _two_layer,
    "companion.effective_dynamics.batches_and_momentum": _batches,
    "companion.effective_dynamics.other_inputs": _clouds,
    "companion.effective_dynamics.other_steps": _steps,
    "problems.clouds": _steps,
    "companion.effective_dynamics.pca": _spiked,
    "companion.sample_complexity.alignment": _two_layer,
    "companion.sample_complexity.effective_dynamics": _spiked,
    "companion.foundations.double_descent.risk": _ridgeless,
    "companion.foundations": _regression,
    "companion.phase_transitions": _multi_index,
    "companion.sample_complexity": _single_index,
}
CASES = collect(
    [
        "problems",
        "companion.alignment.population_matrices",
        "companion.alignment.training_dynamics.limit",
        "companion.alignment.training_dynamics.printed",
        "companion.alignment.xor_alignment.escape",
        "companion.alignment.xor_alignment.start",
        "companion.alignment.xor_population_matrices",
        "companion.effective_dynamics.batches_and_momentum",
        "companion.effective_dynamics.binary_mixture.origin",
        "companion.effective_dynamics.binary_mixture.preactivation",
        "companion.effective_dynamics.binary_mixture.printed",
        "companion.effective_dynamics.binary_mixture.ring",
        "companion.effective_dynamics.other_inputs",
        "companion.effective_dynamics.other_steps",
        "companion.effective_dynamics.pca",
        "companion.effective_dynamics.xor_mixture",
        "companion.foundations.double_descent.risk",
        "companion.sample_complexity.alignment",
        "companion.sample_complexity.effective_dynamics.printed",
        "companion.sample_complexity.information_exponent.links",
        "companion.sample_complexity.information_exponent.model",
        "companion.sample_complexity.information_exponent.models",
        "companion.sample_complexity.information_exponent.population",
        "companion.alignment.beyond.initial",
        "companion.alignment.beyond.spectra",
        "companion.alignment.training_dynamics.dynamics",
        "companion.alignment.transitions",
        "companion.alignment.xor_alignment.late",
        "companion.alignment.xor_rank.rank",
        "companion.alignment.xor_train_matrices",
        "companion.effective_dynamics.binary_mixture.basin",
        "companion.effective_dynamics.binary_mixture.misalignment",
        "companion.foundations.implicit_bias.margin",
        "companion.foundations.implicit_bias.methods",
        "companion.foundations.implicit_bias.printed",
        "companion.foundations.implicit_bias.separable",
        "companion.foundations.interpolation.pointwise",
        "companion.foundations.interpolation.smoothing",
        "companion.phase_transitions.easy_and_hard",
        "companion.sample_complexity.information_exponent.assumptions",
        "companion.sample_complexity.information_exponent.comparison",
        "companion.sample_complexity.information_exponent.passage",
        "companion.sample_complexity.information_exponent.printed",
        "companion.sample_complexity.information_exponent.search",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
    VOCABULARY,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument at a time, each way it can be wrong."""
    assert case.defects() == []


@pytest.mark.nightly
@pytest.mark.parametrize("case", [each for each in CASES if "call" in each.lenient], ids=str)
def test_slow_calls_share_nothing(case: Case) -> None:
    """Arrays of the caller's, or calls in other threads, could change a result."""
    assert case.shared() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out in silence."""
    assert without_example(CASES) == []


@FIXED
@given(st.data())
def test_drawn_input_is_taken_or_refused_by_name(data: st.DataObject) -> None:
    """Any value in place of any argument: a result without NaN, or an error that names it."""
    judge_drawn(CASES, data)
