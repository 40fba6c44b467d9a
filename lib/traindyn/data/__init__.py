"""Image data sets with labels: scikit-learn's digits, MNIST, CIFAR-10 and SVHN.

:func:`~traindyn.data.loaders.digits` needs no network. The others are downloaded once, from where
they are published or a copy named in :mod:`~traindyn.data.files`, and a file is read only if its
SHA-256 checksum is the known one. All return :class:`Images`.

The functions, not the import, need the extra ``data`` (pooch and scikit-learn).
"""

from traindyn.data.images import Images
from traindyn.data.loaders import cifar10, digits, mnist, svhn

__all__ = ["Images", "cifar10", "digits", "mnist", "svhn"]
