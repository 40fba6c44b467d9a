"""Two clouds of inputs around opposite means, with noise of any law, and a linear classifier.

===========  ===================================================================================
`direction`  points with a marked direction, and their statistics
`laws`       laws of one coordinate, with mean zero and variance one
`mixture`    the classifier, with its effective dynamics, and how that fluctuates
===========  ===================================================================================
"""
