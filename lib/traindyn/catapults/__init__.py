"""Step sizes beyond the critical one: reduced maps, quadratic models, spikes and features.

Exact in a few numbers: :mod:`~traindyn.catapults.maps`, :mod:`~traindyn.catapults.scalar_inputs`,
their :mod:`~traindyn.catapults.laws` (series, chaos) and :mod:`~traindyn.catapults.momentum`.
Models: :mod:`~traindyn.catapults.quadratic`, :mod:`~traindyn.catapults.two_layer`,
:mod:`~traindyn.catapults.gates`. Training: :mod:`~traindyn.catapults.training`,
:mod:`~traindyn.catapults.schedules`, :mod:`~traindyn.catapults.batches`. What is seen:
:mod:`~traindyn.catapults.spikes`, :mod:`~traindyn.catapults.directions`,
:mod:`~traindyn.catapults.matching`, :mod:`~traindyn.catapults.batch_law`. Features:
:mod:`~traindyn.catapults.agop`, :mod:`~traindyn.catapults.references`,
:mod:`~traindyn.catapults.association`.
"""

from traindyn.catapults.agop import Target, agop, alignment, target
from traindyn.catapults.association import Association, association
from traindyn.catapults.batch_law import (
    EigenvalueLaw,
    eigenvalue_law,
    supercritical_share,
)
from traindyn.catapults.batches import batch_order
from traindyn.catapults.directions import (
    Directions,
    descent_bound,
    directions,
    eigen_observer,
    linear_losses,
)
from traindyn.catapults.gates import (
    GateOrbit,
    GateRun,
    critical_probability,
    gate_orbit,
    train_one_by_one,
)
from traindyn.catapults.laws import (
    DEPARTURE_RATE,
    LYAPUNOV_EXPONENT,
    PeakSeries,
    PhaseEffect,
    final_kernel_series,
    peak_series,
    periodic_angles,
    phase_effect,
    phase_ends,
    threshold_slope,
    triple_exactly,
)
from traindyn.catapults.maps import (
    Equilibrium,
    Fate,
    Orbit,
    Reduced,
    equilibria,
    fate,
    iterate,
    jacobian,
    limit_orbits,
    reduced,
    reduced_step,
    subcritical_drift,
)
from traindyn.catapults.matching import (
    History,
    Match,
    chance,
    history,
    match,
    snapshots,
)
from traindyn.catapults.momentum import critical_kernel, heavy_ball, heavy_ball_fate
from traindyn.catapults.quadratic import OneExample, QuadraticModel, Run, printed_kernel_step
from traindyn.catapults.references import KernelRegression, kernel_regression
from traindyn.catapults.scalar_inputs import (
    SignClass,
    kernel_step,
    sign_classes,
    top_kernel_scale,
)
from traindyn.catapults.schedules import RepeatedCatapults, TrainingState, step_sizes, triangular
from traindyn.catapults.spikes import (
    Remainders,
    Split,
    batch_threshold,
    is_catapult,
    leading_eigenpairs,
    remainders,
    spikes,
    split_loss,
)
from traindyn.catapults.training import (
    Observer,
    Optimiser,
    Stretch,
    Trainable,
    Training,
    critical_step,
    train,
)
from traindyn.catapults.two_layer import TwoLayerModel, Weights, draw_start, kernel_rate

__all__ = [
    "DEPARTURE_RATE",
    "LYAPUNOV_EXPONENT",
    "Association",
    "Directions",
    "EigenvalueLaw",
    "Equilibrium",
    "Fate",
    "GateOrbit",
    "GateRun",
    "History",
    "KernelRegression",
    "Match",
    "Observer",
    "OneExample",
    "Optimiser",
    "Orbit",
    "PeakSeries",
    "PhaseEffect",
    "QuadraticModel",
    "Reduced",
    "Remainders",
    "RepeatedCatapults",
    "Run",
    "SignClass",
    "Split",
    "Stretch",
    "Target",
    "Trainable",
    "Training",
    "TrainingState",
    "TwoLayerModel",
    "Weights",
    "agop",
    "alignment",
    "association",
    "batch_order",
    "batch_threshold",
    "chance",
    "critical_kernel",
    "critical_probability",
    "critical_step",
    "descent_bound",
    "directions",
    "draw_start",
    "eigen_observer",
    "eigenvalue_law",
    "equilibria",
    "fate",
    "final_kernel_series",
    "gate_orbit",
    "heavy_ball",
    "heavy_ball_fate",
    "history",
    "is_catapult",
    "iterate",
    "jacobian",
    "kernel_rate",
    "kernel_regression",
    "kernel_step",
    "leading_eigenpairs",
    "limit_orbits",
    "linear_losses",
    "match",
    "peak_series",
    "periodic_angles",
    "phase_effect",
    "phase_ends",
    "printed_kernel_step",
    "reduced",
    "reduced_step",
    "remainders",
    "sign_classes",
    "snapshots",
    "spikes",
    "split_loss",
    "step_sizes",
    "subcritical_drift",
    "supercritical_share",
    "target",
    "threshold_slope",
    "top_kernel_scale",
    "train",
    "train_one_by_one",
    "triangular",
    "triple_exactly",
]
