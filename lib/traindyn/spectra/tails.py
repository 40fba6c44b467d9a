r"""How improbable large deviations of averaged matrices are, with explicit constants.

The source proves BGHJ Theorems 6.1 and 6.2 without them.

Let :math:`A` be the mean of :math:`M` independent symmetric matrices :math:`A_\ell` of size
:math:`D`, each made from an input :math:`Y=\mu+Z/\sqrt\lambda` with :math:`|\mu|\le1`,
:math:`\lambda\ge1` and standard Gaussian :math:`Z`. Suppose that for every unit vector :math:`u`

.. math:: |\langle u,A_\ell u\rangle|\le b+\kappa\sum_aw_a\langle e_a,Y\rangle^2

with unit vectors :math:`e_a` and weights :math:`w_a\ge0` of sum one, which may depend on :math:`u`.
Then, with :math:`g` standard Gaussian, :math:`q=b+\kappa(1+g)^2` and
:math:`V(\theta)=\mathbb E[q^2e^{\theta q}]`,

.. math:: \mathbb P(\|A-\mathbb EA\|>t)\le2\cdot9^De^{-M\psi(t/2)},\qquad
          \psi(s)=\max_\theta\big(\theta s-\tfrac12\theta^2V(\theta)\big).

Proof. For a convex increasing function :math:`\varphi` on the half-line the function
:math:`x\mapsto\varphi(b+\kappa x^2)` is convex and even, so that its expectation at
:math:`m+\sigma g` grows with :math:`|m|` and :math:`\sigma`; by Jensen's inequality the expectation
of :math:`\varphi(|\langle u,A_\ell u\rangle|)` is at most :math:`\mathbb E\varphi(q)`. From
:math:`e^x\le1+x+\frac12x^2e^{|x|}` the logarithm of the moment generating function of the centred
form at :math:`\pm\theta` is at most :math:`\frac12\theta^2V(\theta)`, which Chernoff's bound turns
into :math:`e^{-M\psi(s)}` on each side. A net of :math:`9^D` unit vectors with gaps of at most one
quarter sees at least half of an operator norm.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import NamedTuple

from scipy import optimize

from traindyn import _validate
from traindyn.problems.base import Matrix

#: Factor of the form of one input in the matrices of the mixture of k Gaussians, for every k.
MIXTURE: dict[Matrix, float] = {"hessian": 0.5, "g_matrix": 2.0}
#: Share of the range of theta in which the moments are computed; near its end they overflow.
_LAST = 1 - 1e-3


class Tail(NamedTuple):
    r"""Constants of a bound :math:`\exp(-[c\alpha(t\wedge t^2)-C]d)`.

    Attributes
    ----------
    rate : float
        :math:`c`.
    entropy : float
        :math:`C`.
    """

    rate: float
    entropy: float


def second_moment(theta: float, *, factor: float, offset: float = 0.0) -> float:
    r"""Return the expectation of :math:`q^2e^{\theta q}` for :math:`q=b+\kappa(1+g)^2`.

    Parameters
    ----------
    theta : float
        :math:`\theta\ge0`; the expectation is infinite from :math:`1/2\kappa` on.
    factor : float
        :math:`\kappa`, positive.
    offset : float
        :math:`b`, non-negative.

    Examples
    --------
    >>> from traindyn.spectra.tails import second_moment
    >>> round(second_moment(0.0, factor=1.0), 12)
    10.0
    """
    theta = _validate.non_negative("theta", theta)
    factor, offset = _form(factor, offset)
    return inf if 2 * factor * theta >= 1 else exp(min(_log_moment(theta, factor, offset), 709))


def exponent(s: float, *, factor: float, offset: float = 0.0) -> float:
    r"""Return the exponent :math:`\psi(s)` of one quadratic form.

    The mean of :math:`M` forms is further than :math:`s` from its expectation with probability at
    most :math:`2e^{-M\psi(s)}`.

    Parameters
    ----------
    s : float
        Non-negative.
    factor, offset : float
        As in :func:`second_moment`.

    Examples
    --------
    >>> from traindyn.spectra.tails import exponent
    >>> round(exponent(1.0, factor=0.5), 4)
    0.0973
    """
    s = _validate.non_negative("s", s)
    factor, offset = _form(factor, offset)

    def loss(theta: float) -> float:
        return theta**2 * exp(min(_log_moment(theta, factor, offset), 690)) / 2 - theta * s

    end = _LAST / (2 * factor)
    found = optimize.minimize_scalar(loss, bounds=(0.0, end), options={"xatol": 1e-12 * end})
    return max(-float(found.fun), 0.0)


def constants(*, factor: float, offset: float = 0.0, rows: float) -> Tail:
    r"""Return constants for BGHJ Theorems 6.1 and 6.2.

    With them the bound has the form :math:`\exp(-[c\alpha(t\wedge t^2)-C]d)`.

    With :math:`\theta V(\theta)=1` the exponent :math:`\psi(s)` is at least
    :math:`\frac\theta2(s\wedge s^2)`, so that :math:`c=\theta/8`, and
    :math:`C=\rho\log9+\log2` for matrices of size at most :math:`\rho d`.

    Parameters
    ----------
    factor, offset : float
        As in :func:`second_moment`.
    rows : float
        :math:`\rho`, positive.

    Examples
    --------
    The Hessian of the mixture of three Gaussians:

    >>> from traindyn.spectra.tails import constants
    >>> [round(each, 3) for each in constants(factor=0.5, rows=3)]
    [0.023, 7.285]
    """
    factor, offset = _form(factor, offset)
    rows = _validate.positive("rows", rows)

    def gap(theta: float) -> float:
        return log(theta) + _log_moment(theta, factor, offset)

    end = _LAST / (2 * factor)
    theta = optimize.brentq(gap, 1e-9 * end / (1 + (offset + factor) ** 2), end)
    return Tail(float(theta) / 8, rows * log(9) + log(2))


def _log_moment(theta: float, factor: float, offset: float) -> float:
    root = 1 - 2 * factor * theta
    # Under the law tilted by e^{theta q} the Gaussian 1 + g has mean and variance 1 / root.
    square = 1 / root + 1 / root**2
    fourth = 3 / root**2 + 6 / root**3 + 1 / root**4
    size = offset**2 + 2 * offset * factor * square + factor**2 * fourth
    return theta * (offset + factor / root) - log(root) / 2 + log(size)


def _form(factor: float, offset: float) -> tuple[float, float]:
    return _validate.positive("factor", factor), _validate.non_negative("offset", offset)
