"""Step sizes beyond the critical one: reduced maps, models, training, spikes and features.

Exact in a few numbers: :mod:`~traindyn.catapults.maps`. Models:
:mod:`~traindyn.catapults.two_layer`. Training: :mod:`~traindyn.catapults.training`,
:mod:`~traindyn.catapults.schedules`, :mod:`~traindyn.catapults.batches`. What is seen:
:mod:`~traindyn.catapults.spikes`. Features: :mod:`~traindyn.catapults.agop`.
"""

from traindyn.catapults.agop import Target, agop, alignment, target
from traindyn.catapults.batches import batch_order
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
    "Equilibrium",
    "Fate",
    "Observer",
    "Optimiser",
    "Orbit",
    "Reduced",
    "Remainders",
    "RepeatedCatapults",
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
    "batch_order",
    "batch_threshold",
    "critical_step",
    "draw_start",
    "equilibria",
    "fate",
    "is_catapult",
    "iterate",
    "jacobian",
    "kernel_rate",
    "leading_eigenpairs",
    "limit_orbits",
    "reduced",
    "reduced_step",
    "remainders",
    "spikes",
    "split_loss",
    "step_sizes",
    "subcritical_drift",
    "target",
    "train",
    "triangular",
]
