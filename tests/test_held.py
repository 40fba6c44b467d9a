"""What objects hold, and what caches hand out, changes with no array of its user."""

import numpy as np
import pytest

from companion.alignment.xor_alignment import escape
from companion.foundations.double_descent.risk import LinearModel
from companion.sample_complexity.information_exponent.links import line_rule
from traindyn import _validate
from traindyn.deep import fully_connected
from traindyn.diffusion import LinearDiffusion
from traindyn.gaussian import Rule, default_rule
from traindyn.kernels import dual
from traindyn.kernels.flow import KernelFlow
from traindyn.laws import HardSubspace, SampleCovariance, WeightedMarchenkoPastur
from traindyn.problems.base import Sample
from traindyn.problems.multi_index import MultiIndex
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.regression import LeastSquares
from traindyn.problems.two_layer import TwoLayerMixture, equilibria, integrals, limit
from traindyn.trajectory import Trajectory

RNG = np.random.default_rng(0)
PATH = Sample(np.zeros(2), np.zeros(2))
EYE, PAIR = np.eye(2), np.array([0.25, 0.75])
ROWS = RNG.standard_normal((40, 2))
MIXTURE = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)


@pytest.mark.parametrize(
    "array",
    [
        lambda: default_rule(2).nodes,
        lambda: default_rule(2).weights,
        lambda: line_rule((0.0,)).nodes,
        lambda: escape._default(2).nodes,
        lambda: WeightedMarchenkoPastur([1.0, 2.0], 0.5).intervals,
        lambda: WeightedMarchenkoPastur([1.0, 2.0], 0.5).edges,
        lambda: HardSubspace(ROWS[:, 0] ** 2, ROWS, 5.0).outliers.values,
        lambda: HardSubspace(ROWS[:, 0] ** 2, ROWS, 5.0).informative.vectors,
        lambda: KernelFlow(EYE, PAIR).targets,
        lambda: Trajectory(np.arange(2.0), PATH).times,
        lambda: limit.lines(MIXTURE).directions,
        lambda: limit.lines(MIXTURE).line,
        lambda: limit.lines(MIXTURE).side,
        lambda: equilibria.FixedSet(MIXTURE, (0, 1)).classes.sizes,
        lambda: equilibria.classes(MIXTURE).directions,
        lambda: fully_connected([2, 3, 1]).in_degrees[1],
        lambda: dual._hermite(4)[1],
        lambda: integrals._legendre(4)[0],
    ],
)
def test_what_is_kept_cannot_be_written_to(array):
    """Everybody else in the process would get what one has written there."""
    with pytest.raises(ValueError, match="read-only"):
        array()[...] = 0.0


def numbers(found):
    """All numbers of one array or several."""
    return np.hstack([np.ravel(each) for each in (found if isinstance(found, tuple) else (found,))])


@pytest.mark.parametrize(
    ("make", "given", "look"),
    [
        (Trajectory, (np.arange(2.0), PATH), lambda path: path.times),
        (Rule, (ROWS, np.full(40, 1 / 40)), lambda rule: rule.expect(rule.nodes[:, 0])),
        (KernelFlow, (EYE, PAIR), lambda flow: (flow.kernel, flow.targets)),
        (LeastSquares, (ROWS, ROWS[:, 0]), lambda problem: problem.loss([0.0, 1.0])),
        (PopulationBlock, (1.0, EYE, EYE), lambda block: block.dense()),
        (LinearDiffusion, (("a", "b"), EYE, EYE), lambda law: (law.matrix, law.noise)),
        (
            lambda second, biases: MultiIndex(second_layer=second, biases=biases),
            (PAIR, PAIR),
            lambda problem: (problem.second_layer, problem.biases),
        ),
        (lambda c: SampleCovariance(c, 0.5), (PAIR,), lambda law: law.stieltjes(-1.0)),
        (
            lambda w, p: WeightedMarchenkoPastur(w, 0.5, probabilities=p),
            (PAIR, PAIR),
            lambda law: (law.edges, law.cdf(1.0)),
        ),
        (
            lambda w, s: HardSubspace(w, s, 5.0),
            (ROWS[:, 0] ** 2, ROWS),
            lambda law: law.law.edges,
        ),
        (lambda s, c: LinearModel(s, 0.5, c), (PAIR, PAIR), lambda m: (m.signal, m.covariance)),
    ],
)
def test_objects_do_not_hold_the_arrays_of_their_caller(make, given, look):
    """What an object has computed from an array and the array itself would part company."""
    arrays = [np.array(each) if isinstance(each, np.ndarray) else each for each in given]
    expected = numbers(look(make(*arrays)))
    changed = make(*arrays)
    for array in arrays:
        if isinstance(array, np.ndarray):
            array *= 3.0
    assert np.array_equal(numbers(look(changed)), expected)


@pytest.mark.parametrize("value", [np.ma.array([1.0, 99.0], mask=[0, 1]), [1.0, np.ma.masked]])
@pytest.mark.parametrize(
    "check",
    [
        _validate.finite,
        _validate.numeric,
        _validate.finite_complex,
        _validate.positives,
        _validate.increasing,
        lambda name, value: _validate.integers(name, value, least=0),
    ],
)
def test_masked_entries_are_refused(check, value):
    """NumPy forgets the mask, and computes with what is under it."""
    with pytest.raises(ValueError, match="x must have no masked entries, got"):
        check("x", value)


def test_masked_arrays_without_masked_entries_are_arrays():
    """Nothing is lost with their mask."""
    assert np.array_equal(_validate.finite("x", np.ma.array([1.0, 2.0])), [1.0, 2.0])
    with pytest.raises(ValueError, match="rows must have no masked entries"):
        _validate.mask("rows", np.ma.array([True, False], mask=[True, False]), size=2)
