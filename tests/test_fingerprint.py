"""Digests of values and functions."""

import copy
import functools
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass

import jax
import numpy as np
import pytest

from traindyn._fingerprint import fingerprint
from traindyn.activations import TANH
from traindyn.gaussian import default_rule
from traindyn.problems.multi_index import MultiIndex


@dataclass(frozen=True)
class Law:
    """Has something that it computes once."""

    edges: tuple[float, ...]

    @functools.cached_property
    def width(self):
        """Distance of the edges."""
        return self.edges[1] - self.edges[0]


VALUES = [
    None,
    True,
    1,
    1.0,
    np.float64(1),
    1j,
    "1",
    b"1",
    (1,),
    [1],
    {1},
    {1: 1},
    0.1 + 0.2,
    0.3,
    -0.0,
    10**5000,
    np.ones(1),
    np.ones(1, int),
    np.ones((1, 1)),
    np.ones(1, np.float32),
    np.array([None, "a"], object),
    np.random.default_rng(1),
    np.random.default_rng(2),
    np.random.SeedSequence(1),
    slice(1),
    np.sin,
    abs,
    len,
    np,
    Law((1.0, 2.0)),
    Law((1.0, 3.0)),
    Law,
    fingerprint,
    TANH,
    default_rule(1),
    default_rule(2),
    MultiIndex(),
    MultiIndex(activation=TANH, biases=[0.1]),
    lambda: 1,
    lambda: 1.0,
    lambda: VALUES,
    lambda x: x,
    functools.partial(abs, 1),
    functools.partial(abs, 2),
    [].append,
    [1].append,
    jax.jit(lambda x: x + 1),
    jax.jit(lambda x: x + 2),
    functools.cache(lambda: 3),
    np.ma.array([1.0], mask=[True]),
]


def test_values_that_differ_have_different_digests_and_copies_the_same():
    """Equal numbers of different types are kept apart: functions may tell them apart."""
    digests = [fingerprint(value) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert [fingerprint(value) for value in VALUES] == digests
    for value, digest in zip(VALUES[:30], digests):
        if value is not np:
            assert fingerprint(copy.deepcopy(value)) == digest
            assert fingerprint(pickle.loads(pickle.dumps(value))) == digest


def test_what_an_object_has_computed_is_no_part_of_its_value():
    """The stream of a case would depend on who has looked at the law in it."""
    law = Law((1.0, 3.0))
    assert law.width == 2
    assert fingerprint(law) == fingerprint(Law((1.0, 3.0)))


def test_digests_agree_between_processes():
    """Sets and hashes of strings come in another order there."""
    code = (
        "from traindyn._fingerprint import fingerprint\n"
        "print(fingerprint([{'a', 'b', 'c'}, {'x': 1, 'y': 2}, lambda x: x in {'a', 'b', 'c'}]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


MODULES = {
    "model.py": "SCALE = {scale}\ndef risk(x):\n    return SCALE * x\n",
    "with_module.py": "import model\ndef case(x):\n    return model.risk(x)\n",
    "with_name.py": "from model import risk\ndef case(x):\n    return risk(x)\n",
    "inside.py": "def case(x):\n    from model import risk\n    return risk(x)\n",
    "inside_module.py": "def case(x):\n    import model\n    return model.risk(x)\n",
}


@pytest.mark.parametrize("name", list(MODULES)[1:])
def test_functions_are_followed_through_modules_of_the_user(tmp_path, name):
    """A model beside the script that runs it is edited as often as the script."""
    code = (
        f"from {name.removesuffix('.py')} import case\n"
        "from traindyn._fingerprint import fingerprint\nprint(fingerprint(case))"
    )
    found = []
    for scale in (2, 3, 2):
        for file, text in MODULES.items():
            (tmp_path / file).write_text(text.format(scale=scale), encoding="utf8")
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout)
    assert found[0] == found[2] != found[1]


def test_what_refers_to_itself_ends():
    """Functions that call themselves and lists that hold themselves must not loop."""

    def count(n):
        return n and count(n - 1)

    endless = [1]
    endless.append(endless)
    assert len({fingerprint(count), fingerprint(endless)}) == 2
    deep = []
    for _ in range(10**5):
        deep = [deep]
    with pytest.raises(TypeError, match="nested too deeply"):
        fingerprint(deep)
