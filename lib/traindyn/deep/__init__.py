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
from traindyn.deep.blocks import (  # noqa: E402
    HessianBlocks,
    VectorNorm,
    hessian_blocks,
    last_blocks,
    two_layer_vector_norm,
    vector_norm,
)
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
from traindyn.deep.propagation import (  # noqa: E402
    IncomingNorms,
    MatrixVariances,
    dependence,
    gradient_moment_bound,
    gradient_squares,
    incoming_norms,
    matrix_variances,
    relu_gradient_moment,
)
from traindyn.deep.sketch import Sketch, positions, sketch  # noqa: E402
from traindyn.deep.spectrum import TwoLayerSpectrum  # noqa: E402
from traindyn.deep.tails import (  # noqa: E402
    columns_threshold,
    linear_threshold,
    printed_series_threshold,
    product_supremum,
    series_threshold,
    series_variance,
    vector_threshold,
)
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
    "HessianBlocks",
    "HessianNorms",
    "IncomingNorms",
    "Layer",
    "Linearisation",
    "Linearity",
    "LossHessian",
    "MatrixVariances",
    "Model",
    "Network",
    "Sketch",
    "TaylorModel",
    "TwoLayerNorm",
    "TwoLayerSpectrum",
    "VectorNorm",
    "columns_threshold",
    "convolutional",
    "densenet",
    "dependence",
    "descend",
    "drop_edges",
    "edge_weights",
    "from_graph",
    "fully_connected",
    "gradient_moment_bound",
    "gradient_squares",
    "gradients",
    "hessian_ball",
    "hessian_blocks",
    "hessian_norms",
    "hessian_operator",
    "hessian_product",
    "image_network",
    "incoming_norms",
    "influences",
    "inspect",
    "last_blocks",
    "linear_threshold",
    "linearise",
    "linearity",
    "matrix_variances",
    "narrow",
    "optimiser",
    "perceptron",
    "positions",
    "printed_series_threshold",
    "product_supremum",
    "random_graph",
    "relu_gradient_moment",
    "residual",
    "resolve",
    "series_threshold",
    "series_variance",
    "sketch",
    "tangent_kernel",
    "two_layer_eigenvalues",
    "two_layer_vector_norm",
    "vector_norm",
    "vector_threshold",
    "vertex_layers",
    "vision_transformer",
    "wide_resnet",
    "with_bottlenecks",
]
