"""Regression and classification where the model fits its data exactly.

===============  ===================================================================
`least_squares`  more unknowns than equations: what descent picks, in closed form
`margin`         the max-margin predictor of separable data, exactly
`separable`      descent and flow on separable data, to astronomical times
`methods`        other optimisers on the same gradients
`smoothing`      nearest neighbours and kernel smoothing, interpolating or not
`pointwise`      exact risk of a singular-kernel smoother at a point
===============  ===================================================================
"""

from traindyn.problems.regression.least_squares import DescentStatistics, LeastSquares
from traindyn.problems.regression.margin import (
    MaxMargin,
    NotSeparableError,
    max_margin,
    separable_data,
    signed,
    sup_norm_margin,
)
from traindyn.problems.regression.methods import Method, descend
from traindyn.problems.regression.pointwise import (
    LocalDesign,
    RiskParts,
    hoeffding_bound,
    leading_variance,
    local_risk,
    lower_tail_bound,
)
from traindyn.problems.regression.separable import (
    EXPONENTIAL,
    LOGISTIC,
    Classifier,
    GrowthStatistics,
    MarginLoss,
)
from traindyn.problems.regression.smoothing import (
    PowerKernel,
    ball_volume,
    best_bandwidth,
    nadaraya_watson,
    nearest_neighbours,
    neighbour_test_risk,
    neighbour_training_risk,
    smoothing_exponent,
)

__all__ = [
    "EXPONENTIAL",
    "LOGISTIC",
    "Classifier",
    "DescentStatistics",
    "GrowthStatistics",
    "LeastSquares",
    "LocalDesign",
    "MarginLoss",
    "MaxMargin",
    "Method",
    "NotSeparableError",
    "PowerKernel",
    "RiskParts",
    "ball_volume",
    "best_bandwidth",
    "descend",
    "hoeffding_bound",
    "leading_variance",
    "local_risk",
    "lower_tail_bound",
    "max_margin",
    "nadaraya_watson",
    "nearest_neighbours",
    "neighbour_test_risk",
    "neighbour_training_risk",
    "separable_data",
    "signed",
    "smoothing_exponent",
    "sup_norm_margin",
]
