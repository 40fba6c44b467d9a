"""Random matrices of attention: the four ensembles of MDL Chapter 14, Figure 2.2."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from companion.attention.particles.attention import Head
from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = ["random_head"]

HeadPanel: TypeAlias = Literal["A", "B", "C", "D"]


def random_head(panel: HeadPanel, dimension: int, *, rng: RNG) -> Head:
    r"""Draw the matrices of a head.

    Entries have variance one over the dimension, whatever the ensemble: the notes give no
    normalisation. With it Ginibre matrices have their eigenvalues in the unit disc, and Wigner
    matrices in [-2, 2].

    Parameters
    ----------
    panel : {"A", "B", "C", "D"}
        As in the figure. A: Q, K and V real Ginibre. B: :math:`Q^\top K` Wigner, and V positive
        semi-definite, the square of a matrix of the GOE. C: Q and K real Ginibre,
        :math:`V = Q^\top K`. D: :math:`Q^\top K` Wigner, :math:`V = Q^\top K`.
    dimension : int
        Of the tokens; the matrices are square.
    rng : int, SeedSequence or Generator
        Of the Gaussian entries.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.ensembles import random_head
    >>> head = random_head("D", 4, rng=0)
    >>> bool(np.all(head.value == head.key) and np.all(head.key == head.key.T))
    True
    """
    name = _validate.choice("panel", panel, ("A", "B", "C", "D"))
    d = _validate.integer("dimension", dimension, least=1)
    generator = _validate.generator("rng", rng)

    def ginibre() -> Array:
        return np.asarray(generator.standard_normal((d, d)) / np.sqrt(d))

    def wigner() -> Array:
        drawn = ginibre()
        return np.asarray((drawn + drawn.T) / np.sqrt(2))

    if name == "A":
        return Head(ginibre(), ginibre(), ginibre())
    if name == "B":
        key, root = wigner(), wigner()
        return Head(None, key, root @ root)
    if name == "C":
        query, key = ginibre(), ginibre()
        return Head(query, key, query.T @ key)
    both = wigner()
    return Head(None, both, both)
