"""Deep feedforward networks on any directed acyclic graph, and how linear they are (with JAX).

:mod:`~traindyn.deep.builders` and :mod:`~traindyn.deep.graphs` make networks in the NTK
parameterisation, :mod:`~traindyn.deep.hessian` has products with and spectral norms of the
Hessian of an output in the weights, :mod:`~traindyn.deep.tangent` gradients, the tangent kernel
and linearised networks, :mod:`~traindyn.deep.train` gradient descent with the kernel on its way.
:mod:`~traindyn.deep.models` and :mod:`~traindyn.deep.optimisers` have networks and optimisers for
:func:`traindyn.catapults.train`.

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
    narrow,
    residual,
    with_bottlenecks,
)
from traindyn.deep.critical import Curvature, LossHessian  # noqa: E402
from traindyn.deep.graphs import (  # noqa: E402
    GraphReport,
    Linearity,
    edge_weights,
    from_graph,
    influences,
    inspect,
    linearity,
    random_graph,
    vertex_layers,
)
from traindyn.deep.hessian import (  # noqa: E402
    BallNorms,
    HessianNorms,
    hessian_ball,
    hessian_norms,
    hessian_operator,
    hessian_product,
    two_layer_eigenvalues,
)
from traindyn.deep.models import (  # noqa: E402
    Model,
    image_network,
    perceptron,
    vision_transformer,
    wide_resnet,
)
from traindyn.deep.network import Layer, Network  # noqa: E402
from traindyn.deep.optimisers import OPTIMISERS, optimiser  # noqa: E402
from traindyn.deep.spectrum import TwoLayerSpectrum  # noqa: E402
from traindyn.deep.tangent import (  # noqa: E402
    Linearisation,
    gradients,
    linearise,
    tangent_kernel,
)
from traindyn.deep.taylor import Differentiable, TaylorModel  # noqa: E402
from traindyn.deep.train import Descent, descend  # noqa: E402
from traindyn.deep.two_layer import TwoLayerNorm  # noqa: E402

__all__ = [
    "ACTIVATIONS",
    "OPTIMISERS",
    "BallNorms",
    "Curvature",
    "Descent",
    "Differentiable",
    "GraphReport",
    "HessianNorms",
    "Layer",
    "Linearisation",
    "Linearity",
    "LossHessian",
    "Model",
    "Network",
    "TaylorModel",
    "TwoLayerNorm",
    "TwoLayerSpectrum",
    "convolutional",
    "densenet",
    "descend",
    "drop_edges",
    "edge_weights",
    "from_graph",
    "fully_connected",
    "gradients",
    "hessian_ball",
    "hessian_norms",
    "hessian_operator",
    "hessian_product",
    "image_network",
    "influences",
    "inspect",
    "linearise",
    "linearity",
    "narrow",
    "optimiser",
    "perceptron",
    "random_graph",
    "residual",
    "resolve",
    "tangent_kernel",
    "two_layer_eigenvalues",
    "vertex_layers",
    "vision_transformer",
    "wide_resnet",
    "with_bottlenecks",
]
