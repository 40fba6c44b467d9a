"""The vision transformer: what its blocks cannot see, and its messages."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")

from companion.catapults.sgd.transformer import vision_transformer


def test_patches_are_told_apart_by_their_positions_alone():
    """Without positions the order of the patches is unseen; with them it is seen."""
    model = vision_transformer((4, 4), width=8, heads=2)
    read, positions, *rest = model.initial(rng=0)
    image = np.random.default_rng(1).standard_normal((4, 4))
    turned = image[:, [2, 3, 0, 1]]
    batch = model.prepare(np.stack([image.ravel(), turned.ravel()]))
    blind = model.outputs((read, 0 * positions, *rest), batch)
    assert abs(blind[0] - blind[1]) < 1e-12
    seen = model.outputs((read, positions, *rest), batch)
    assert abs(seen[0] - seen[1]) > 1e-3


def test_messages():
    """Each names the argument."""
    for call, message in (
        (lambda: vision_transformer([5, 4]), "patch must divide"),
        (lambda: vision_transformer([4, 4], width=6), "heads must divide"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
