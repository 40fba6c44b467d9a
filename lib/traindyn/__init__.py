"""Training dynamics in high dimension: simulation and theory.

Rooms, from the ground up; a room imports only from those above it in this list.

===============  =====================================================================
`activations`    activation functions with their derivatives
`gaussian`       Gaussian expectations by quadrature
`laws`           random-matrix laws as objects
`linalg`         leading eigenpairs of symmetric operators, alignment, angles
`catapults`      step sizes beyond the critical one: maps, quadratic models, features
`particles`      self-attention as interacting particles on the sphere
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

The claims of the book and the verdicts on them are recorded with :mod:`claimbook`.
"""

__version__ = "0.1.0"
