"""Steps that are not plain SGD: signs of the gradient, Adam, and projections of the step.

Each takes the inputs and the loss of :class:`traindyn.problems.clouds.mixture.Mixture`, and brings
its own step in full dimension and its own effective dynamics.

===========  ===================================================================================
`steps`      what all of them share
`margin`     a quadrature over margins
`sign`       the sign of the gradient of a batch, coordinate by coordinate
`adam`       Adam, whose second moments are slow
`rmsprop`    Adam without momentum, whose second moments remember a fixed number of steps
`projected`  the step along the leading eigenvector of the Hessian, or orthogonal to it
===========  ===================================================================================
"""
