"""One-pass stochastic gradient descent: in full dimension, and on summary statistics.

:mod:`~traindyn.sgd.direct` and :mod:`~traindyn.sgd.reduced` have the same two functions,
``run`` and ``run_replicas``, and give the same law; the cost of the second does not depend
on the dimension.
"""

from traindyn.sgd import direct, reduced

__all__ = ["direct", "reduced"]
