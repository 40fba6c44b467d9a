"""The room is an extra: nobody else needs JAX."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

import traindyn

ROOMS = sorted({*traindyn.__all__} - {"deep"})


def python(code: str) -> str:
    """Run code in a fresh interpreter; its output."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.strip()


def test_no_other_room_imports_jax() -> None:
    """A reader without JAX, and one who does not want to wait for it, must get the rest."""
    imports = "\n".join(["import claimbook.cli", *(f"import traindyn.{room}" for room in ROOMS)])
    assert python(f"import sys\n{imports}\nprint('jax' in sys.modules)") == "False"


def test_says_what_to_install() -> None:
    """The name of the extra must be in the message."""
    code = """
import sys
sys.modules["jax"] = None
try:
    import traindyn.deep
except ImportError as error:
    print(error)
"""
    assert "pip install 'traindyn[deep]'" in python(code)


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed (extra 'deep')")
def test_works_in_double_precision() -> None:
    """The residuals promised are out of reach of single precision."""
    code = """
import numpy as np
from traindyn.deep import fully_connected
network = fully_connected([2, 3, 1])
print(network.values(network.initial(rng=0), np.ones((1, 2))).dtype)
"""
    assert python(code) == "float64"
