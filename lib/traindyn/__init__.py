"""Training dynamics in high dimension: simulation and theory.

Rooms, from the ground up; a room imports only from those above it in this list.

===============  =====================================================================
`activations`    activation functions with their derivatives
`gaussian`       Gaussian expectations by quadrature
`relu`           half-space moments of Gaussians, for rectified units
`laws`           random-matrix laws as objects
`linalg`         leading eigenpairs of symmetric operators, alignment, angles
`catapults`      step sizes beyond the critical one: maps, quadratic models, features
`diffusion`      scalar and vector diffusions by their drift and noise
`trajectory`     the result type shared by simulation and theory
`parallel`       replicas and sweeps on several workers
`data`           image data sets with labels (extra: pooch, scikit-learn)
`figures`        one figure style, light and dark
`interactive`    figures a reader can move, in the static pages too (extra: book)
`problems`       data law, network and loss, one file each
`kernels`        kernels of wide networks, and lazy training
`deep`           deep networks: their Hessians on any graph, models that train (extra: JAX, Optax)
`sgd`            one-pass SGD in full dimension, and on summary statistics alone
`effective`      limits of the summary statistics: equations and fixed points
`dmft`           mean-field equations of full-batch gradient descent, and thresholds
`spectra`        Hessian and G-matrix along training, measured and predicted
`conformance`    whether the methods of a new problem agree with each other
===============  =====================================================================

A room is loaded when it is first used: ``import traindyn; traindyn.sgd`` imports it. The claims of
the book and the verdicts on them are recorded with :mod:`claimbook`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindyn import (
        activations,
        catapults,
        conformance,
        data,
        deep,
        diffusion,
        dmft,
        effective,
        figures,
        gaussian,
        interactive,
        kernels,
        laws,
        linalg,
        parallel,
        problems,
        relu,
        sgd,
        spectra,
        trajectory,
    )

__all__ = [
    "activations",
    "catapults",
    "conformance",
    "data",
    "deep",
    "diffusion",
    "dmft",
    "effective",
    "figures",
    "gaussian",
    "interactive",
    "kernels",
    "laws",
    "linalg",
    "parallel",
    "problems",
    "relu",
    "sgd",
    "spectra",
    "trajectory",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a room when it is first used.

    Raises
    ------
    AttributeError
        If there is no such room.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no room {name!r}; it has {__all__}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """Name the rooms beside what is there already."""
    return sorted({*globals(), *__all__})
