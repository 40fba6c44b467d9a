"""One-pass SGD on inputs that are not Gaussian: pairs of coordinates, matrices, images.

The classifier of clouds with independent coordinates is :mod:`traindyn.problems.clouds.mixture`.

===========  ===================================================================================
`pairs`      a classifier of two clouds whose noise is correlated within pairs of coordinates
`matrix`     matrix PCA whose noise has entries of any law
`images`     two classes of images, and Gaussians with their means and covariances
===========  ===================================================================================
"""
