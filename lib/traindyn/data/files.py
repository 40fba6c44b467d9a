"""Published files with their checksums, downloaded once.

The host that first published MNIST no longer serves it reliably; the address here is that of an
identical copy. SVHN is published without encryption: the checksum alone vouches for it.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CIFAR10", "MNIST", "SVHN", "Published", "fetch", "optional"]


class Published(NamedTuple):
    """A file that others publish.

    Attributes
    ----------
    address : str
        Ends with the name of the file.
    sha256 : str
    """

    address: str
    sha256: str

    @property
    def name(self) -> str:
        """Last part of the address."""
        return self.address.rsplit("/", 1)[1]


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = {
    "train": (
        Published(
            f"{_MNIST}/train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        Published(
            f"{_MNIST}/train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        Published(
            f"{_MNIST}/t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        Published(
            f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
"""Images and labels of each part."""

CIFAR10 = Published(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
"""The binary version: the one for Python is a pickle, which may run code when read."""

_SVHN = "http://ufldl.stanford.edu/housenumbers"
SVHN = {
    "train": Published(
        f"{_SVHN}/train_32x32.mat",
        "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    ),
    "test": Published(
        f"{_SVHN}/test_32x32.mat",
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    ),
}


def optional(module: str) -> Any:
    """Import a module of the extra, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "traindyn.data needs pooch and scikit-learn: pip install 'traindyn[data]'"
        ) from error


def fetch(file: Published, folder: str | PathLike[str] | None) -> Path:
    """Download a file unless it is there, and check it.

    Parameters
    ----------
    file : Published
        Its address, from which the name follows, and its checksum.
    folder : path, optional
        Where it is, or will be; the cache folder of the system unless given.

    Raises
    ------
    ConnectionError
        If it is not there and cannot be downloaded.
    ValueError
        If what was downloaded has another checksum; it is removed again.
    ImportError
        If pooch is missing.
    """
    pooch, requests = optional("pooch"), optional("requests")
    place = Path(pooch.os_cache("traindyn") if folder is None else folder).expanduser()
    target = place / file.name
    try:
        return Path(pooch.retrieve(file.address, file.sha256, fname=file.name, path=place))
    except requests.exceptions.RequestException as error:
        state = "the one there has another checksum, and" if target.exists() else "it is missing;"
        raise ConnectionError(
            f"{target} is needed, {state} downloading it from {file.address} failed: {error}. "
            f"Download it where there is a network and put it into {place}"
        ) from error
