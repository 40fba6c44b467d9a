"""Single-index models learnt by one-pass SGD on the sphere, and their sample complexity.

==============  ==================================================================
`links`         scalar functions for NumPy and numba, Hermite coefficients
`model`         what all models share: the exact chain of the overlap, moments, kernels
`models`        online PCA, a binary mixture, teacher and student, phase retrieval
`assumptions`   Assumption A: the size of the gradient's sample error
`population`    information exponent, consistency, equator, critical step size
`passage`       passage times on the chain; a path taken apart
`search`        laws of the time that the search for the direction takes
`comparison`    discrete Bihari–LaSalle inequality
`printed`       formulas as the source prints them, to be rejected
==============  ==================================================================
"""

from traindyn.problems.single_index.assumptions import (
    GradientErrors,
    gradient_errors,
    norm_moment,
    norm_moment_bound,
)
from traindyn.problems.single_index.comparison import (
    bihari_lasalle,
    comparison_constant,
    slowest_growth,
)
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
from traindyn.problems.single_index.passage import Decomposition, Passages, decompose, passages
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
from traindyn.problems.single_index.search import EscapeLaw, Explosion, escape_law, explosion

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
    "Decomposition",
    "EscapeLaw",
    "Explosion",
    "GradientErrors",
    "InformationExponent",
    "Link",
    "Moments",
    "OnlinePCA",
    "Passages",
    "Point",
    "SingleIndex",
    "Statistics",
    "TeacherStudent",
    "bihari_lasalle",
    "coefficients",
    "comparison_constant",
    "critical_step",
    "decompose",
    "equator",
    "escape_law",
    "explosion",
    "fisher_consistent",
    "gradient_errors",
    "hermite",
    "information_exponent",
    "norm_moment",
    "norm_moment_bound",
    "passages",
    "phase_retrieval",
    "series",
    "slowest_growth",
    "steepest_slope",
    "taylor",
    "travel_time",
]
