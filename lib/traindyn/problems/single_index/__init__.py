"""Single-index models learnt by one-pass SGD on the sphere, and their sample complexity.

==============  ==================================================================
`links`         scalar functions for NumPy and numba, Hermite coefficients
`model`         what all models share: the exact chain of the overlap, moments, kernels
`models`        online PCA, a binary mixture, teacher and student, phase retrieval
`population`    information exponent, consistency, equator, critical step size
==============  ==================================================================
"""

from traindyn.problems.single_index.links import (
    ABSOLUTE,
    COSINE,
    LINEAR,
    RELU,
    SQUARE,
    TANH,
    Link,
    coefficients,
    hermite,
    series,
)
from traindyn.problems.single_index.model import (
    Compiled,
    DataRule,
    Moments,
    Point,
    SingleIndex,
    Statistics,
)
from traindyn.problems.single_index.models import (
    BinaryMixture,
    OnlinePCA,
    TeacherStudent,
    phase_retrieval,
)
from traindyn.problems.single_index.population import (
    InformationExponent,
    critical_step,
    equator,
    fisher_consistent,
    information_exponent,
    steepest_slope,
    taylor,
    travel_time,
)

__all__ = [
    "ABSOLUTE",
    "COSINE",
    "LINEAR",
    "RELU",
    "SQUARE",
    "TANH",
    "BinaryMixture",
    "Compiled",
    "DataRule",
    "InformationExponent",
    "Link",
    "Moments",
    "OnlinePCA",
    "Point",
    "SingleIndex",
    "Statistics",
    "TeacherStudent",
    "coefficients",
    "critical_step",
    "equator",
    "fisher_consistent",
    "hermite",
    "information_exponent",
    "phase_retrieval",
    "series",
    "steepest_slope",
    "taylor",
    "travel_time",
]
