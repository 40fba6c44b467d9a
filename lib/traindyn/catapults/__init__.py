"""Step sizes beyond the critical one: reduced maps, quadratic models, spikes and features.

:mod:`~traindyn.catapults.maps` and :mod:`~traindyn.catapults.scalar_inputs` are exact in two
numbers, :mod:`~traindyn.catapults.quadratic` has general quadratic models,
:mod:`~traindyn.catapults.two_layer` and :mod:`~traindyn.catapults.training` networks and their
Taylor models, :mod:`~traindyn.catapults.spikes` and :mod:`~traindyn.catapults.agop` what is seen
of catapults and what they do to the features.
"""

from traindyn.catapults.agop import Target, agop, alignment, target
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
from traindyn.catapults.quadratic import OneExample, QuadraticModel, Run, printed_kernel_step
from traindyn.catapults.scalar_inputs import (
    SignClass,
    kernel_step,
    sign_classes,
    top_kernel_scale,
)
from traindyn.catapults.schedules import Progress, RepeatedCatapults, step_sizes, triangular
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
from traindyn.catapults.training import Model, Optimiser, Training, critical_step, train
from traindyn.catapults.two_layer import TwoLayerModel, Weights, draw_start, kernel_rate

__all__ = [
    "Equilibrium",
    "Fate",
    "Model",
    "OneExample",
    "Optimiser",
    "Orbit",
    "Progress",
    "QuadraticModel",
    "Reduced",
    "Remainders",
    "RepeatedCatapults",
    "Run",
    "SignClass",
    "Split",
    "Target",
    "Training",
    "TwoLayerModel",
    "Weights",
    "agop",
    "alignment",
    "batch_threshold",
    "critical_step",
    "draw_start",
    "equilibria",
    "fate",
    "is_catapult",
    "iterate",
    "jacobian",
    "kernel_rate",
    "kernel_step",
    "leading_eigenpairs",
    "limit_orbits",
    "printed_kernel_step",
    "reduced",
    "reduced_step",
    "remainders",
    "sign_classes",
    "spikes",
    "split_loss",
    "step_sizes",
    "subcritical_drift",
    "target",
    "top_kernel_scale",
    "train",
    "triangular",
]
