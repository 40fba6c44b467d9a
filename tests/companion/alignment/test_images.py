"""Blocks of softmax regression on a finite set and on Gaussian classes, and the steps of SGD."""

from dataclasses import replace

import numpy as np
import pytest

from companion.alignment.images import GaussianClasses, ImageClasses
from traindyn import gaussian
from traindyn.problems.base import MATRICES
from traindyn.sgd import direct


def some_classes():
    """Three Gaussian classes in four dimensions, with unequal covariances."""
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(3, 4, 4)) * np.linspace(0.4, 1.2, 4)
    return GaussianClasses(
        [0.5, 0.3, 0.2], rng.normal(size=(3, 4)), np.einsum("kij,klj->kil", roots, roots)
    )


def drawn(classes, n, seed=0):
    """Draw inputs of these classes, in their proportion."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes.k), np.rint(n * classes.shares).astype(int))
    roots = np.linalg.cholesky(classes.covariances + 1e-12 * np.eye(classes.dimension))
    noise = np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(len(labels), 4)))
    return classes.means[labels] + noise, labels


def test_blocks_are_derivatives_of_the_loss():
    """The Hessian by differences of the gradient, G as the second moment of gradients."""
    images = ImageClasses(*drawn(some_classes(), 40))
    x = np.random.default_rng(1).normal(size=(3, 4))

    def gradients(x):
        weights = np.exp(images.inputs @ x.T)
        wrong = weights / weights.sum(axis=1, keepdims=True) - np.eye(3)[images.labels]
        return wrong[:, :, None] * images.inputs[:, None, :]

    found = {matrix: images.blocks(x, matrix=matrix) for matrix in MATRICES}
    for c in range(3):
        for i in range(4):
            step = np.zeros((3, 4))
            step[c, i] = 1e-6
            slope = (gradients(x + step) - gradients(x - step))[:, c].mean(axis=0) / 2e-6
            np.testing.assert_allclose(found["hessian"][c, i], slope, atol=1e-8)
        each = gradients(x)[:, c]
        np.testing.assert_allclose(found["g_matrix"][c], each.T @ each / len(each), atol=1e-12)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_gaussian_blocks_are_those_of_many_draws(matrix, rank):
    """For parameters of any rank, to the error of the draws; another covariance is seen."""
    classes = some_classes()
    rng = np.random.default_rng(5)
    x = 0.4 * rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 4))
    inputs, labels = drawn(classes, 400_000)
    centred = replace(classes, means=classes.means - classes.shares @ classes.means)
    truth = ImageClasses(inputs, labels).blocks(x, matrix=matrix)
    found = centred.blocks(x, matrix=matrix, rule=gaussian.sobol(3, 2**14, rng=0))
    np.testing.assert_allclose(found, truth, atol=0.02)
    mean = np.tensordot(classes.shares, classes.covariances, axes=1)
    other = replace(centred, covariances=[mean] * 3).blocks(x, matrix=matrix)
    assert rank == 0 or np.abs(other - truth).max() > 0.05


def test_steps_have_the_moments_of_the_classes():
    """From zero a step is (y - 1/k) times an input, for draws of a set and of Gaussians."""
    images = ImageClasses(*drawn(some_classes(), 60))
    for problem in (images, images.gaussians):
        kernel, rng, seen = problem.direct_kernel(), np.random.default_rng(2), []
        for _ in range(40_000):
            state = (np.zeros((3, 4)),)
            kernel.step(state, kernel.constants, rng, 1.0)
            seen.append(state[0])
        target = np.eye(3)[images.labels] - 1 / 3
        mean = np.einsum("nc,ni->ci", target, images.inputs) / len(target)
        np.testing.assert_allclose(np.mean(seen, axis=0), mean, atol=0.03)
        second = np.mean(np.einsum("nci,ncj->ncij", seen, seen), axis=0)
        expected = images.blocks(np.zeros((3, 4)), matrix="g_matrix")
        np.testing.assert_allclose(second, expected, atol=0.06)


def test_a_path_is_recorded():
    """The parameters are the statistics, and lower the loss."""
    images = ImageClasses(*drawn(some_classes(), 60))
    path = direct.run(images, images.initial(rng=0), [0.0, 4.0], step_size=0.05, rng=1)
    np.testing.assert_array_equal(path.statistics.x[0], np.zeros((3, 4)))
    logits = images.inputs @ path.statistics.x[1].T
    lost = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), images.labels]
    assert lost.mean() < 0.8 * np.log(3)


def test_moments_of_a_set():
    """Inputs are centred, and Gaussians have their shares, means and covariances."""
    inputs, labels = drawn(some_classes(), 50)
    images = ImageClasses(inputs + 7.0, labels)
    np.testing.assert_allclose(images.inputs.mean(axis=0), 0.0, atol=1e-12)
    for label in range(3):
        rows = images.inputs[labels == label]
        np.testing.assert_allclose(images.gaussians.means[label], rows.mean(axis=0))
        cov = np.cov(rows.T, bias=True)
        np.testing.assert_allclose(images.gaussians.covariances[label], cov, atol=1e-12)
    np.testing.assert_allclose(images.gaussians.shares, np.bincount(labels) / len(labels))


def test_strong_directions_are_weakened():
    """Their variance within classes is that of the next one, and all else is as it was."""
    images = ImageClasses(*drawn(some_classes(), 300))
    values, vectors = np.linalg.eigh(images.within)
    weak = images.weakened(2)
    values[2:] = values[1]
    np.testing.assert_allclose(vectors.T @ weak.within @ vectors, np.diag(values), atol=1e-10)
    np.testing.assert_allclose(weak.inputs @ vectors[:, :2], images.inputs @ vectors[:, :2])


def test_refuses_bad_inputs():
    """Missing classes, misshaped arrays, covariances that are none, rules of another dimension."""
    with pytest.raises(ValueError, match="every class from 0 on"):
        ImageClasses(np.ones((2, 3)), [0, 2])
    with pytest.raises(ValueError, match="labels must have shape"):
        ImageClasses(np.ones((2, 3)), [0, 1, 1])
    with pytest.raises(ValueError, match="covariances"):
        GaussianClasses([1.0], np.ones((1, 2)), [[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(ValueError, match="means"):
        GaussianClasses([0.5, 0.5], np.ones((3, 2)), [np.eye(2)] * 2)
    flat = ImageClasses(np.outer([1.0, 2.0, 4.0], [1.0, 0.0, 0.0]), [0, 0, 0])
    with pytest.raises(ValueError, match="fewer than the noise has"):
        flat.weakened(2)
    classes = some_classes()
    with pytest.raises(ValueError, match="rule must have dimension 3"):
        classes.blocks(np.zeros((3, 4)), matrix="hessian", rule=gaussian.gauss_hermite(2, 4))
    with pytest.raises(ValueError, match="x must have shape"):
        classes.blocks(np.zeros((2, 4)), matrix="hessian")
    with pytest.raises(ValueError, match="matrix"):
        classes.blocks(np.zeros((3, 4)), matrix="fisher")
