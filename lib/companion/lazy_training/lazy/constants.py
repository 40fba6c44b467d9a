r"""Lazy training: the constants of MDL Theorem 9.1, measured, and what follows from them.

With the residual :math:`\rho = |y - f(\theta_0)|`, the extreme singular values
:math:`\sigma_{\min}, \sigma_{\max}` of :math:`Df(\theta_0)` and the Lipschitz constant L of Df,
the theorem assumes :math:`h = L \rho / \sigma_{\min}^2 < 1/4`. It bounds the loss of the gradient
flow by :math:`R_0 e^{-\lambda_0 t}` with :math:`\lambda_0 = \sigma_{\min}^2 / 2n`, its distance
from the start by a constant times :math:`\rho / \sigma_{\min}`, and its distance from the
linearised flow.

*Sharper.* Along the flow the residual falls by :math:`\sigma_{\min}(Df(\theta))` at least per unit
of path length :math:`\ell`, and that is at least :math:`\sigma_{\min} - L \ell`. Hence
:math:`|y - f| \le \rho - \sigma_{\min} \ell + L \ell^2 / 2`, and as soon as :math:`h < 1/2`

.. math:: \ell \le \ell_* = \frac{\sigma_{\min}}{L} (1 - \kappa), \qquad
          R_t \le R_0\, e^{-2 \kappa^2 \sigma_{\min}^2 t / n}, \qquad \kappa = \sqrt{1 - 2h} .

Neither can be improved: for a parabola (:class:`QuadraticMap`) the first is an equality and the
second the true rate at late times, and for :math:`h > 1/2` the target is out of reach. With
:math:`\|K_t - K_0\| \le M = L \ell_* (2 \sigma_{\max} + L \ell_*)` the equation of
:math:`r = f(\theta_t) - \bar f_t` (MDL, proof of Theorem 9.1) gives

.. math:: |r_t| \le \frac{M \rho}{\sigma_{\min}^2} \cdot
          \frac{e^{-\kappa^2 s} - e^{-s}}{1 - \kappa^2}, \quad s = \sigma_{\min}^2 t / n .

*Distance from the linearised flow.* A bound by way of r has the condition number of Df twice; the
one here is for :math:`e_t = \theta_t - \bar\theta_t` itself. With :math:`J = Df(\theta_0)`,
:math:`\delta_t = Df(\theta_t) - J` and the remainder
:math:`q_t = f(\theta_t) - f(\theta_0) - J (\theta_t - \theta_0)`

.. math:: \dot e = \tfrac1n \big( -J^T J e + \delta_t^T (y - f) - J^T q_t \big), \quad
          e_t = \int_0^t e^{-(t-s) J^T J / n}\, \tfrac1n \delta_s^T (y - f)\, ds
          - \int_0^t \big( 1 - e^{-(t-s) J^T J / n} \big) J^+ \dot q_s\, ds

by parts, as :math:`J^T / n` followed by the decay is the derivative of the decayed pseudo-inverse
:math:`J^+`. Now :math:`\|\delta\| \le L \ell`, :math:`|\dot q| \le L \ell\, \dot\ell`,
:math:`|y - f| / n \le \dot\ell / (\sigma_{\min} - L \ell)` and
:math:`\|J^+\| = 1 / \sigma_{\min}`: at all times

.. math:: |\theta_t - \bar\theta_t| \le \frac{\sigma_{\min}}{L} \Big(
          -\log \kappa - (1 - \kappa) + \tfrac12 (1 - \kappa)^2 \Big)
          = \frac{L \rho^2}{\sigma_{\min}^3} \big( 1 + O(h) \big) ,

free of :math:`\sigma_{\max}`; as h tends to zero the distance tends to half of that for the
parabola, and to :math:`1 / \sqrt 2` of it for the second example of :class:`QuadraticMap`.
Under the theorem's own assumption its third part, the quadratic member of the minimum, holds with
8 for the hidden constant, and with 1.55 if :math:`\sigma_{\min}` replaces :math:`\sigma_{\max}`.
The other member is at least :math:`\rho / \sigma_{\min}`, and so says no more than the second
part and the triangle inequality: :math:`3 \rho / \sigma_{\min}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.kernels.training import Linearisable, Pullback

__all__ = [
    "Bounds",
    "LazyConstants",
    "QuadraticMap",
    "Scales",
    "linearisation_gap",
    "measure",
    "scales",
    "sharp_bounds",
    "theorem_bounds",
]

_SMALL = 1e-3


@dataclass(frozen=True)
class LazyConstants:
    r"""What the theorem's bounds are made of.

    Attributes
    ----------
    samples : int
        The n of the loss :math:`\frac{1}{2n} |y - f|^2`.
    residual : float
        :math:`\rho`, Euclidean norm, non-negative.
    sigma_min, sigma_max : float
        Extreme singular values of the Jacobian at the start, positive.
    lipschitz : float
        Of the Jacobian in operator norm, non-negative.

    Raises
    ------
    ValueError
        If a constant is out of range.
    """

    samples: int
    residual: float
    sigma_min: float
    sigma_max: float
    lipschitz: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        _validate.integer("samples", self.samples, least=1)
        _validate.non_negative("residual", self.residual)
        _validate.positive("sigma_min", self.sigma_min)
        _validate.non_negative("lipschitz", self.lipschitz)
        if _validate.number("sigma_max", self.sigma_max) < self.sigma_min:
            raise ValueError(
                f"sigma_max must be at least sigma_min = {self.sigma_min:g}, got {self.sigma_max:g}"
            )

    @property
    def ratio(self) -> float:
        r""":math:`h = L \rho / \sigma_{\min}^2`: below 1/4 in the theorem, below 1/2 suffices."""
        return self.lipschitz * self.residual / self.sigma_min**2


class Bounds(NamedTuple):
    """Consequences for the gradient flow, at all times.

    Attributes
    ----------
    rate : float
        The loss is at most its start times ``exp(-rate * t)``.
    distance : float
        Of the parameters from their start.
    deviation : float
        Of the parameters from those of the linearised flow.
    """

    rate: float
    distance: float
    deviation: float


@dataclass(frozen=True)
class QuadraticMap:
    r"""Outputs of degree two, :math:`f_i(\theta) = J_i \theta + \frac12 \theta^T H_i \theta`.

    Where the bounds of this module are attained, or nearly. One parameter, J = :math:`\sigma` and
    H = -L: the *parabola*, the slowest flow, whose derivative falls as fast as L allows along
    the only way there is. Three parameters and two outputs,

    .. math:: f = \big( \sigma \theta_1 + L \theta_1 \theta_3,\;
              \sigma \theta_2 + \tfrac L2 (\theta_1^2 - \theta_3^2) \big):

    towards (h, 0) the gradient turns away from the first axis, on one side into the kernel of J.

    Attributes
    ----------
    slope : array_like, shape (N, p)
        J, the Jacobian at zero.
    curvature : array_like, shape (N, p, p)
        H, symmetric.

    Raises
    ------
    ValueError
        If the shapes disagree or a Hessian is not symmetric.

    Examples
    --------
    >>> from companion.lazy_training.lazy.constants import QuadraticMap
    >>> hill = QuadraticMap([[2.0]], [[[-0.5]]])
    >>> hill.outputs([4.0], [[0.0]]).tolist(), hill.tangent_kernel([4.0], [[0.0]]).tolist()
    ([4.0], [[0.0]])
    """

    slope: Array
    curvature: Array

    def __post_init__(self) -> None:
        """Check the shapes and the symmetry."""
        slope = _validate.finite("slope", self.slope, shape=(None, None))
        outputs, size = slope.shape
        curvature = _validate.finite("curvature", self.curvature, shape=(outputs, size, size))
        if not np.array_equal(curvature, curvature.swapaxes(1, 2)):
            raise ValueError("curvature must be symmetric in its last two axes")
        object.__setattr__(self, "slope", _validate.frozen(slope))
        object.__setattr__(self, "curvature", _validate.frozen(curvature))

    @property
    def size(self) -> int:
        """Number p of parameters."""
        return int(self.slope.shape[1])

    def outputs(self, parameters: ArrayLike, x: ArrayLike) -> Array:
        r"""Return the outputs, shape (N,), whatever the inputs.

        Parameters
        ----------
        parameters : array_like, shape (p,)
            :math:`\theta`.
        x : array_like, shape (N, d)
            Must have a row for each output; the entries play no part.
        """
        return self.vjp(parameters, x)[0]

    def vjp(self, parameters: ArrayLike, x: ArrayLike) -> tuple[Array, Pullback]:
        r"""Return the outputs, and the product with the transposed Jacobian.

        Parameters
        ----------
        parameters : array_like, shape (p,)
            :math:`\theta`.
        x : array_like, shape (N, d)
            As for :meth:`outputs`.

        Returns
        -------
        outputs : ndarray, shape (N,)
        pullback : callable
            (N,) to (p,).
        """
        theta = _validate.finite("parameters", parameters, shape=(self.size,))
        _validate.finite("x", x, shape=(len(self.slope), None))
        bend = self.curvature @ theta
        jacobian = self.slope + bend
        outputs = (self.slope + bend / 2) @ theta
        return np.asarray(outputs), lambda weights: np.asarray(jacobian.T @ weights)

    def tangent_kernel(
        self, parameters: ArrayLike, x: ArrayLike, other: ArrayLike | None = None
    ) -> Array:
        r"""Products of the gradients of the outputs, shape (N, N).

        Parameters
        ----------
        parameters : array_like, shape (p,)
            :math:`\theta`.
        x, other : array_like, shape (N, d)
            As for :meth:`outputs`; `other` may be left out.
        """
        count = len(self.slope)
        if other is not None:
            _validate.finite("other", other, shape=(count, None))
        pull = self.vjp(parameters, x)[1]
        jacobian = np.stack([pull(row) for row in np.eye(count)])
        return np.asarray(jacobian @ jacobian.T)


class Scales(NamedTuple):
    r"""Orders of magnitude in MDL Theorem 9.2, without their constants.

    Attributes
    ----------
    residual, sigma_min, sigma_max, lipschitz : float
    distance : float
        :math:`\rho / \sigma_{\min}`.
    deviation : float
        The minimum of Theorem 9.1 (3), after substitution.
    """

    residual: float
    sigma_min: float
    sigma_max: float
    lipschitz: float
    distance: float
    deviation: float


def measure(
    model: Linearisable, parameters: ArrayLike, x: ArrayLike, y: ArrayLike, *, lipschitz: float
) -> LazyConstants:
    r"""Measure the constants of a network at its start.

    Parameters
    ----------
    model : Linearisable
        Gives outputs and their tangent kernel.
    parameters : array_like, shape (p,)
        The start :math:`\theta_0`.
    x : array_like, shape (n, d)
        Training inputs, one in each row.
    y : array_like, shape (N,)
        Targets, in the order of the model's outputs.
    lipschitz : float
        Such as ``model.lipschitz(x).upper`` of a :class:`~traindyn.kernels.two_layer.TwoLayer`.

    Raises
    ------
    ValueError
        If the shapes disagree, or the Jacobian has no full row rank: the theorem is then empty.
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    outputs = model.outputs(parameters, inputs)
    targets = _validate.finite("y", y, shape=outputs.shape)
    values = np.linalg.eigvalsh(model.tangent_kernel(parameters, inputs))
    if values[0] <= values.size * np.finfo(float).eps * values[-1]:
        raise ValueError(
            f"the Jacobian must have full row rank at parameters and x, its kernel has smallest "
            f"eigenvalue {values[0]:.6g} and largest {values[-1]:.6g}"
        )
    return LazyConstants(
        samples=inputs.shape[0],
        residual=float(np.linalg.norm(targets - outputs)),
        sigma_min=float(np.sqrt(values[0])),
        sigma_max=float(np.sqrt(values[-1])),
        lipschitz=lipschitz,
    )


def theorem_bounds(constants: LazyConstants) -> Bounds:
    r"""Bounds of MDL Theorem 9.1, with explicit constants 2 and 8.

    .. math:: \lambda_0 = \frac{\sigma_{\min}^2}{2n}, \qquad \frac{2 \rho}{\sigma_{\min}}, \qquad
              \min\Big\{ \frac{3 \rho}{\sigma_{\min}},
              \frac{8 L \sigma_{\max}^2 \rho^2}{\sigma_{\min}^5} \Big\} .

    Parameters
    ----------
    constants : LazyConstants
        With ``ratio < 1/4``; beyond it these are formulas and not bounds.

    Examples
    --------
    >>> from companion.lazy_training.lazy.constants import LazyConstants, theorem_bounds
    >>> theorem_bounds(LazyConstants(1, 1.0, 2.0, 2.0, 0.5))
    Bounds(rate=2.0, distance=1.0, deviation=0.5)
    """
    c = constants
    quadratic = 8 * c.lipschitz * c.sigma_max**2 * c.residual**2 / c.sigma_min**5
    return Bounds(
        rate=c.sigma_min**2 / (2 * c.samples),
        distance=2 * c.residual / c.sigma_min,
        deviation=min(3 * c.residual / c.sigma_min, quadratic),
    )


def sharp_bounds(constants: LazyConstants) -> Bounds:
    r"""Sharp rate and distance, and a deviation free of sigma_max (see the module's text).

    Parameters
    ----------
    constants : LazyConstants
        With ``ratio < 1/2``.

    Returns
    -------
    Bounds
        Each better than that of :func:`theorem_bounds` where both hold.

    Raises
    ------
    ValueError
        If the ratio is 1/2 or more: then the target may be out of reach.

    Examples
    --------
    A constant Jacobian:

    >>> from companion.lazy_training.lazy.constants import LazyConstants, sharp_bounds
    >>> sharp_bounds(LazyConstants(1, 1.0, 2.0, 2.0, 0.0))
    Bounds(rate=8.0, distance=0.5, deviation=0.0)
    """
    c = constants
    kappa2, length, turn = _geometry(c)
    bent = turn / c.sigma_min  # 1 - kappa
    if bent < _SMALL:  # the first terms cancel
        shape = bent**2 * (1 + bent / 3 + bent**2 / 4)
    else:
        shape = -np.log1p(-bent) - bent + bent**2 / 2
    quadratic = float(c.sigma_min / c.lipschitz * shape) if c.lipschitz > 0 else 0.0
    return Bounds(
        rate=2 * kappa2 * c.sigma_min**2 / c.samples,
        distance=length,
        deviation=min(length + c.residual / c.sigma_min, quadratic),
    )


def linearisation_gap(constants: LazyConstants, times: ArrayLike) -> Array:
    r"""Bound on :math:`|f(\theta_t) - \bar f_t|` over the training set, shape (T,).

    The inequality of MDL's proof, with the factor :math:`|\bar f_t - y|` that is missing there,
    solved (see the module's text).

    Parameters
    ----------
    constants : LazyConstants
        With ``ratio < 1/2``.
    times : array_like, shape (T,)
        t of the gradient flow, non-negative.

    Returns
    -------
    ndarray, shape (T,)

    Raises
    ------
    ValueError
        If the ratio is 1/2 or more.
    """
    c = constants
    kappa2, _, turn = _geometry(c)
    clock = c.sigma_min**2 / c.samples * _validate.finite("times", times)
    lost = 1 - kappa2
    # (e^{-kappa2 s} - e^{-s}) / (1 - kappa2), also in the limit kappa2 = 1.
    shape = clock * np.exp(-clock) if lost == 0 else -np.exp(-kappa2 * clock) * np.expm1(
        -lost * clock
    ) / lost  # fmt: skip
    height = turn * (2 * c.sigma_max + turn) * c.residual / c.sigma_min**2
    return np.asarray(height * shape)


def scales(samples: int, dimension: int, width: int, scale: float) -> Scales:
    r"""Orders of magnitude of MDL Theorem 9.2.

    .. math:: \rho \lesssim (1 + \alpha) \sqrt n, \quad \sigma_{\min} \gtrsim \alpha \sqrt d, \quad
              \sigma_{\max} \lesssim \alpha (\sqrt n + \sqrt d), \quad
              L_n \lesssim \alpha \sqrt{d / m}\, (\sqrt n + \sqrt d),

    and what Theorem 9.1 makes of them. The source's last display is not that; it is
    :func:`companion.lazy_training.lazy.printed.printed_deviation_scale`.

    Parameters
    ----------
    samples, dimension, width : int
        n, d and m.
    scale : float
        :math:`\alpha`.

    Examples
    --------
    At n = d the deviation is of order :math:`n / \sqrt{m d}`:

    >>> from companion.lazy_training.lazy.constants import scales
    >>> a, b = scales(50, 50, 10_000, 1.0), scales(50, 50, 40_000, 1.0)
    >>> round(a.deviation / b.deviation, 12)
    2.0
    """
    n = _validate.integer("samples", samples, least=1)
    d = _validate.integer("dimension", dimension, least=1)
    m = _validate.integer("width", width, least=1)
    alpha = _validate.positive("scale", scale)
    rho, low = (1 + alpha) * np.sqrt(n), alpha * np.sqrt(d)
    high = alpha * (np.sqrt(n) + np.sqrt(d))
    lipschitz = high * np.sqrt(d / m)
    linear = high / low**2 * rho + lipschitz / low**3 * rho**2
    quadratic = lipschitz * high**2 / low**5 * rho**2
    found = (rho, low, high, lipschitz, rho / low, min(linear, quadratic))
    return Scales(*(float(each) for each in found))


def _geometry(c: LazyConstants) -> tuple[float, float, float]:
    """Return kappa squared, the path length and L times it."""
    if c.ratio >= 0.5:
        raise ValueError(
            f"lipschitz * residual / sigma_min**2 must be below 1/2, got {c.ratio:.6g}"
        )
    kappa2 = 1 - 2 * c.ratio
    # (1 - kappa) = 2 h / (1 + kappa), without cancellation.
    length = 2 * c.residual / c.sigma_min / (1 + np.sqrt(kappa2))
    return kappa2, float(length), float(c.lipschitz * length)
