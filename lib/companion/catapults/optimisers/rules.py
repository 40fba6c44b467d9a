r"""The optimisers of ZHU Table C.1, from Optax, with the defaults of PyTorch.

Each takes steps of size one; :func:`~traindyn.catapults.training.train` multiplies them by the step
size, which may therefore change on the way. With g the gradient and all operations entry by entry:

========  ==========================================================================
gd        :math:`-g`
momentum  :math:`-b`, :math:`b \leftarrow .9\, b + g`
rmsprop   :math:`-g / (\sqrt v + 10^{-8})`, :math:`v \leftarrow .99\, v + .01\, g^2`
adagrad   :math:`-g / \sqrt{v + 10^{-20}}`, :math:`v \leftarrow v + g^2` (PyTorch adds
          :math:`10^{-10}` to the root, which is the same to ten digits)
adadelta  :math:`-\Delta = -g \sqrt{(u + \epsilon)/(v + \epsilon)}`, v and u the means of
          :math:`g^2` and of past :math:`\Delta^2` at .9, :math:`\epsilon = 10^{-6}`
adam      :math:`-\hat m / (\sqrt{\hat v} + 10^{-8})`, unbiased means at .9 and .999
========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import optax

from traindyn import _validate

__all__ = ["OPTIMISERS", "optimiser"]

OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "gd": lambda: optax.sgd(1.0),
    "momentum": lambda: optax.sgd(1.0, momentum=0.9),
    "rmsprop": lambda: optax.rmsprop(1.0, decay=0.99, eps=1e-8, eps_in_sqrt=False),
    "adagrad": lambda: optax.adagrad(1.0, initial_accumulator_value=0.0, eps=1e-20),
    "adadelta": lambda: optax.adadelta(1.0, rho=0.9, eps=1e-6),
    "adam": lambda: optax.adam(1.0, b1=0.9, b2=0.999, eps=1e-8),
}
"""By name: how each is made."""


def optimiser(name: str) -> optax.GradientTransformation:
    """Return an optimiser with steps of size one.

    Parameters
    ----------
    name : {"gd", "momentum", "rmsprop", "adagrad", "adadelta", "adam"}
        A row of the module's table, which has its formula and its constants.

    Returns
    -------
    optax.GradientTransformation
        Compiled.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> from companion.catapults.optimisers.rules import optimiser
    >>> import numpy as np
    >>> adam = optimiser("adam")
    >>> weights = (np.zeros(2),)
    >>> change, _ = adam.update((np.array([3.0, -0.1]),), adam.init(weights), weights)
    >>> change[0].round(6).tolist()
    [-1.0, 1.0]
    """
    made = OPTIMISERS[_validate.choice("name", name, tuple(OPTIMISERS))]()
    return optax.GradientTransformation(made.init, jax.jit(made.update))
