"""Image data sets with labels: digits, clothes, faces and other objects.

:func:`~traindyn.data.loaders.digits` and :func:`~traindyn.data.loaders.mnist_sample`, 5000 images
of MNIST, need no network. The others are downloaded once, from where
they are published or a copy named in :mod:`~traindyn.data.files`, or are found in the folder that
the environment variable ``TRAINDYN_DATA`` names; a file is read only if its checksum is the known
one. All return :class:`Images`. :func:`~traindyn.data.preparation.pooled` averages pixels.

The functions, not the import, need the extra ``data`` (pooch and scikit-learn; Pillow for faces).
"""

from traindyn.data.images import Images
from traindyn.data.loaders import (
    celeba,
    cifar10,
    digits,
    fashion_mnist,
    mnist,
    mnist_sample,
    svhn,
    usps,
)
from traindyn.data.preparation import pooled

__all__ = [
    "Images",
    "celeba",
    "cifar10",
    "digits",
    "fashion_mnist",
    "mnist",
    "mnist_sample",
    "pooled",
    "svhn",
    "usps",
]
