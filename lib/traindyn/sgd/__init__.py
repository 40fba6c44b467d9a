"""Gradient descent: one-pass stochastic, and full-batch.

:mod:`~traindyn.sgd.direct` (in full dimension) and :mod:`~traindyn.sgd.reduced` (on summary
statistics) have the same two functions, ``run`` and ``run_replicas``, and give the same law;
the cost of the second does not depend on the dimension. :mod:`~traindyn.sgd.full_batch` trains
two-layer networks on multi-index targets, all samples at every step.
"""

from traindyn.sgd import direct, full_batch, reduced

__all__ = ["direct", "full_batch", "reduced"]
