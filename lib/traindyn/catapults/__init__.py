"""Step sizes beyond the critical one: reduced maps, models, training, spikes and features.

Exact in a few numbers: :mod:`~traindyn.catapults.maps`. Models:
:mod:`~traindyn.catapults.two_layer`. Training: :mod:`~traindyn.catapults.training`,
:mod:`~traindyn.catapults.schedules`, :mod:`~traindyn.catapults.batches`. What is seen:
:mod:`~traindyn.catapults.spikes`. Features: :mod:`~traindyn.catapults.agop`.
"""

from traindyn.catapults.agop import Target, agop, alignment, target
from traindyn.catapults.batches import batch_order
from traindyn.catapults.maps import (
    Fate,
    Orbit,
    Reduced,
    fate,
    iterate,
    limit_orbits,
    reduced_step,
)
from traindyn.catapults.schedules import (
    TrainingState,
    step_sizes,
)
from traindyn.catapults.spikes import (
    batch_threshold,
    leading_eigenpairs,
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
from traindyn.catapults.two_layer import (
    TwoLayerModel,
    Weights,
    kernel_rate,
)

__all__ = [
    "Fate",
    "Observer",
    "Optimiser",
    "Orbit",
    "Reduced",
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
    "fate",
    "iterate",
    "kernel_rate",
    "leading_eigenpairs",
    "limit_orbits",
    "reduced_step",
    "step_sizes",
    "target",
    "train",
]
