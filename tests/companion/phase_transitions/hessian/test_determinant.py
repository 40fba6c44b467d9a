"""The determinant whose zeros are outliers: eigenvalues, fresh inputs, what forces change."""

import numpy as np
import pytest

from companion.phase_transitions.hessian.determinant import ReducedLimit, reduced
from traindyn.laws import HardSubspace


@pytest.fixture
def rng():
    """A fixed stream."""
    return np.random.default_rng(7)


@pytest.fixture
def matrix(rng):
    """A symmetric matrix."""
    drawn = rng.standard_normal((12, 12))
    return drawn + drawn.T


@pytest.fixture
def draws(rng):
    """Weights, products with two directions and one force, all dependent."""
    rows = rng.standard_normal((3000, 2))
    weights = np.tanh(rows[:, 0] ** 2 - rows[:, 1] ** 2)
    return weights, rows, (rows.sum(axis=1) + rng.standard_normal(3000) / 2)[:, None]


def test_determinant_is_that_of_the_whole_over_that_of_the_rest(matrix, rng):
    """The Schur complement on an orthonormal basis."""
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    rest = basis[:, 3:].T @ matrix @ basis[:, 3:]
    z = 0.3
    whole = np.linalg.det(matrix - z * np.eye(12)) / np.linalg.det(rest - z * np.eye(9))
    assert np.linalg.det(reduced(matrix, basis[:, :3], z)) == pytest.approx(whole)


def test_other_coordinates_of_the_span(matrix, rng):
    """A change of basis acts on both sides."""
    basis, change = rng.standard_normal((12, 3)), rng.standard_normal((3, 3))
    expected = change.T @ reduced(matrix, basis, 0.3) @ change
    assert reduced(matrix, basis @ change, 0.3) == pytest.approx(expected)


def test_as_many_negative_eigenvalues_as_eigenvalues_to_come(matrix, rng):
    """Its negative eigenvalues count those of the matrix below z, less those of the rest."""
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    values = np.linalg.eigvalsh(matrix)
    rest = np.linalg.eigvalsh(basis[:, 3:].T @ matrix @ basis[:, 3:])
    for z in np.linspace(values[0] - 1, values[-1] + 1, 23):
        negative = np.sum(np.linalg.eigvalsh(reduced(matrix, basis[:, :3], z)) < 0)
        assert negative == np.sum(values < z) - np.sum(rest < z)


@pytest.mark.parametrize("side", ["left", "right"])
def test_without_forces_outliers_of_fresh_inputs(draws, side):
    """The zero is the outlier of the law for fresh inputs, on each side."""
    weights, rows, _ = draws
    gram = np.cov(rows.T, bias=True) + np.outer(rows.mean(axis=0), rows.mean(axis=0))
    unit = rows @ np.linalg.inv(np.linalg.cholesky(gram)).T
    limit = ReducedLimit(weights, unit, np.empty((3000, 0)), np.eye(2), 20.0)
    known = HardSubspace(weights, unit, 20.0, side=side).outliers.values[0]
    assert limit.outermost(side) == pytest.approx(known)


def test_without_an_outlier_the_edge(rng):
    """Weights that do not depend on the direction have none."""
    weights, rows = rng.uniform(1, 2, 3000), rng.standard_normal((3000, 1))
    limit = ReducedLimit(weights, rows, np.empty((3000, 0)), [[np.mean(rows**2)]], 4.0)
    assert limit.outermost("left") == limit.law.edges[0]
    assert limit.outermost("right") == limit.law.edges[-1]


@pytest.mark.parametrize("z", [-1.0, 1.0])
def test_forces_orthogonal_to_fresh_inputs(draws, z):
    """A matrix with given products and inputs off the span that are orthogonal to the forces."""
    weights, rows, forces = draws
    rng, d = np.random.default_rng(3), 302
    off = forces / np.linalg.norm(forces)
    found = []
    for _ in range(16):
        fresh = rng.standard_normal((3000, d - 2))
        inputs = np.concatenate([rows, fresh - off @ (off.T @ fresh)], axis=1)
        hessian = (inputs.T * weights) @ inputs / 3000
        found.append(reduced(hessian, np.eye(d, 2), z))
    limit, plain = (
        ReducedLimit(weights, rows, used, np.eye(2), 10.0)(z)
        for used in (3 * forces, forces[:, :0])
    )
    error = np.std(found, axis=0, ddof=1) / 4
    assert np.all(np.abs(np.mean(found, axis=0) - limit) < 6 * error)
    assert np.max(np.abs(np.mean(found, axis=0) - plain) / error) > 12


def test_refusals(draws, matrix):
    """Dependent directions and forces, an eigenvalue, and a side that is none."""
    weights, rows, forces = draws
    with pytest.raises(ValueError, match="directions linearly independent, got a singular matrix"):
        reduced(matrix, np.ones((12, 2)), 0.3)
    with pytest.raises(ValueError, match="z must be no eigenvalue"):
        reduced(np.eye(3), np.eye(3, 1), 1.0)
    with pytest.raises(ValueError, match="forces must be linearly independent, got 2"):
        ReducedLimit(weights, rows, np.repeat(forces, 2, axis=1), np.eye(2), 20.0)
    with pytest.raises(ValueError, match="gram must be positive definite, got least eigenvalue 0"):
        ReducedLimit(weights, rows, forces, np.ones((2, 2)), 20.0)
    with pytest.raises(ValueError, match="side must be one of"):
        ReducedLimit(weights, rows, forces, np.eye(2), 20.0).outermost("top")
