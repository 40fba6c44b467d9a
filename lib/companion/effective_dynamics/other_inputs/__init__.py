"""One-pass SGD on inputs that are not Gaussian: independent coordinates, pairs, matrices, images.

===========  ===================================================================================
`direction`  points with a marked direction, and their statistics
`laws`       laws of one coordinate, with mean zero and variance one
`mixture`    a classifier on two clouds, with its effective dynamics, and how that fluctuates
`matrix`     matrix PCA whose noise has entries of any law
`images`     two classes of images, and Gaussians with their means and covariances
===========  ===================================================================================
"""
