"""Deep feedforward networks on any directed acyclic graph, and how linear they are (with JAX).

:mod:`~traindyn.deep.builders` makes networks in the NTK parameterisation,
:mod:`~traindyn.deep.hessian` has products with and spectral norms of the Hessian of an output in
the weights, :mod:`~traindyn.deep.tangent` gradients and the tangent kernel.
:mod:`~traindyn.deep.models` has networks for :func:`~traindyn.catapults.training.train`, which also
takes the optimisers of Optax, and :mod:`~traindyn.deep.differentiated` what else JAX differentiates
needs to be trained so.

This room needs the extra ``deep`` (JAX, networkx, Optax); no other room imports it. It computes in
double precision: importing it sets ``jax_enable_x64``.
"""

try:
    import jax
    import networkx  # noqa: F401
    import optax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "traindyn.deep needs JAX, networkx and Optax: pip install 'traindyn[deep]'"
    ) from error

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
# Results are waited for at every step, so handing short calculations to another thread only costs.
jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]

from traindyn.deep.activations import ACTIVATIONS, resolve  # noqa: E402
from traindyn.deep.builders import (  # noqa: E402
    convolutional,
    densenet,
    drop_edges,
    fully_connected,
    residual,
    with_bottlenecks,
)
from traindyn.deep.critical import Curvature, LossHessian  # noqa: E402
from traindyn.deep.hessian import (  # noqa: E402
    HessianNorms,
    hessian_norms,
    hessian_operator,
    hessian_product,
    two_layer_eigenvalues,
)
from traindyn.deep.models import Model, image_network, perceptron, wide_resnet  # noqa: E402
from traindyn.deep.network import Layer, Network  # noqa: E402
from traindyn.deep.tangent import (  # noqa: E402
    gradients,
    tangent_kernel,
)
from traindyn.deep.two_layer import TwoLayerNorm  # noqa: E402

__all__ = [
    "ACTIVATIONS",
    "Curvature",
    "HessianNorms",
    "Layer",
    "LossHessian",
    "Model",
    "Network",
    "TwoLayerNorm",
    "convolutional",
    "densenet",
    "drop_edges",
    "fully_connected",
    "gradients",
    "hessian_norms",
    "hessian_operator",
    "hessian_product",
    "image_network",
    "perceptron",
    "residual",
    "resolve",
    "tangent_kernel",
    "two_layer_eigenvalues",
    "wide_resnet",
    "with_bottlenecks",
]
