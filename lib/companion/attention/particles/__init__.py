"""Self-attention as interacting particles on the sphere.

:mod:`~companion.attention.particles.attention` has the dynamics, with any matrices, heads and
feed-forward layer; :mod:`~companion.attention.particles.mean_field` densities on the circle.
"""
