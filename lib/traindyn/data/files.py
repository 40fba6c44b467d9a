"""Published files with their checksums, downloaded once, or found where a user has put them.

The host that first published MNIST no longer serves it reliably; the address here is that of an
identical copy. SVHN and Fashion-MNIST are published without encryption: the checksum alone vouches
for them.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

__all__ = [
    "CELEBA",
    "CIFAR10",
    "FASHION_MNIST",
    "FOLDER",
    "MNIST",
    "SVHN",
    "USPS",
    "DataSet",
    "Published",
    "fetch",
    "optional",
]

#: Environment variable that names a folder of files which are there already.
FOLDER = "TRAINDYN_DATA"

#: With what a file begins that is compressed by gzip.
GZIP = b"\x1f\x8b"

#: Seconds until a server that says nothing is given up, and bytes read at a time.
_PATIENCE, _BLOCK = 30.0, 1 << 20


class Published(NamedTuple):
    """A file that others publish.

    Attributes
    ----------
    address : str
        Ends with the name of the file; of a page that leads to it if it cannot be downloaded by
        its address.
    checksum : str
        SHA-256 of the file, or ``md5:`` and that checksum where no other is known.
    size : int
        Megabytes, rounded up.
    content : str, optional
        SHA-256 of what a compressed file holds, by which a copy is known that was compressed
        anew or not at all.
    """

    address: str
    checksum: str
    size: int
    content: str | None = None

    @property
    def name(self) -> str:
        """Last part of the address."""
        return self.address.rsplit("/", 1)[1]


class DataSet(NamedTuple):
    """Files that belong together, and what their authors ask of those who use them.

    Attributes
    ----------
    name : str
    folder : str
        Where its files are, below that of all data sets.
    licence : str
    citation : str
    files : dict
        By what they hold.
    by_hand : bool
        Whether they can be downloaded only by hand.
    """

    name: str
    folder: str
    licence: str
    citation: str
    files: dict[str, Published]
    by_hand: bool = False


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = DataSet(
    "MNIST",
    "mnist",
    "CC BY-SA 3.0",
    "Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits (1998)",
    {
        "train images": Published(
            f"{_MNIST}/train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            10,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        "train labels": Published(
            f"{_MNIST}/train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            1,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        "test images": Published(
            f"{_MNIST}/t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            2,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        "test labels": Published(
            f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            1,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    },
)

_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
FASHION_MNIST = DataSet(
    "Fashion-MNIST",
    "fashion-mnist",
    "MIT",
    "H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST, arXiv 1708.07747 (2017)",
    {
        "train images": Published(
            f"{_FASHION}/train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            27,
        ),
        "train labels": Published(
            f"{_FASHION}/train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            1,
        ),
        "test images": Published(
            f"{_FASHION}/t10k-images-idx3-ubyte.gz",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            5,
        ),
        "test labels": Published(
            f"{_FASHION}/t10k-labels-idx1-ubyte.gz",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            1,
        ),
    },
)

# The binary version: the one for Python is a pickle, which may run code when read.
CIFAR10 = DataSet(
    "CIFAR-10",
    "cifar-10",
    "none stated",
    "A. Krizhevsky: Learning multiple layers of features from tiny images (2009)",
    {
        "archive": Published(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            171,
        )
    },
)

_SVHN = "http://ufldl.stanford.edu/housenumbers"
SVHN = DataSet(
    "SVHN",
    "svhn",
    "for non-commercial use only",
    "Y. Netzer et al.: Reading digits in natural images with unsupervised feature learning (2011)",
    {
        "train": Published(
            f"{_SVHN}/train_32x32.mat",
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            183,
        ),
        "test": Published(
            f"{_SVHN}/test_32x32.mat",
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            65,
        ),
    },
)

_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
USPS = DataSet(
    "USPS",
    "usps",
    "none stated",
    "J. J. Hull: A database for handwritten text recognition research, IEEE PAMI 16 (1994)",
    {
        "train": Published(f"{_USPS}/usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197", 7),
        "test": Published(f"{_USPS}/usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118", 2),
    },
)

_CELEBA = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
CELEBA = DataSet(
    "CelebA",
    "celeba",
    "for non-commercial research only, not to be passed on",
    "Z. Liu, P. Luo, X. Wang, X. Tang: Deep learning face attributes in the wild (ICCV 2015)",
    {
        "images": Published(
            f"{_CELEBA}/img_align_celeba.zip",
            "46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
            1444,
        ),
        "attributes": Published(
            f"{_CELEBA}/list_attr_celeba.txt",
            "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
            27,
        ),
        "partition": Published(
            f"{_CELEBA}/list_eval_partition.txt",
            "fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7",
            3,
        ),
    },
    by_hand=True,
)


def optional(module: str) -> Any:
    """Import a module of the extra, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "traindyn.data needs pooch and scikit-learn: pip install 'traindyn[data]'"
        ) from error


def fetch(data: DataSet, key: str, folder: str | PathLike[str] | None) -> Path:
    """Return the path of a file of a data set, downloaded unless it is there, and checked.

    A download that was cut short goes on where it stopped. Before one begins, its size, the
    licence and the reference are printed.

    Parameters
    ----------
    data : DataSet
        To which the file belongs.
    key : str
        Of the file, among those of the data set.
    folder : path, optional
        Where files are, or will be, each data set in a folder of its own or all together. Unless
        given, the folder named by the environment variable ``TRAINDYN_DATA``; without it, the
        cache folder of the system. A file that was published compressed may be there as it was
        published, compressed anew or not compressed, if the checksum of its content is known.

    Raises
    ------
    ConnectionError
        If it is not there and cannot be downloaded.
    ValueError
        If what was downloaded has another checksum; it is removed again.
    OSError
        If it cannot be written.
    ImportError
        If pooch is missing.
    """
    file = data.files[key]
    place = folder if folder is not None else os.environ.get(FOLDER) or None
    if place is None:
        place = optional("pooch").os_cache("traindyn")
    place = Path(place).expanduser()
    there = [path for path in _candidates(file, data, place) if path.is_file()]
    for path in there:
        if _matches(path, path.stat().st_mtime_ns, file):
            return path
    state = f"{there[0]} has another checksum, and" if there else "it is missing;"
    target = place / data.folder / file.name
    if data.by_hand:
        raise ConnectionError(
            f"{target} is needed, {state} it can be downloaded by hand only: see "
            f"{file.address.rpartition('/')[0]}, and put {file.name} into {target.parent}"
        )
    pooch, requests = optional("pooch"), optional("requests")
    print(
        f"{data.name}: downloading {file.size} MB from {file.address} to {target.parent}; "
        f"licence: {data.licence}; please cite {data.citation}"
    )
    try:
        done = pooch.retrieve(
            file.address, file.checksum, fname=file.name, path=target.parent, downloader=_resume
        )
    except requests.exceptions.RequestException as error:
        raise ConnectionError(
            f"{target} is needed, {state} downloading it from {file.address} failed: {error}. "
            f"Download it where there is a network and put it into {target.parent}"
        ) from error
    except OSError as error:
        raise OSError(error.errno, f"{target} cannot be written: {error.strerror}") from error
    return Path(done)


def _candidates(file: Published, data: DataSet, place: Path) -> Iterator[Path]:
    """Where a file can be, as it was published or decompressed."""
    for folder in (place / data.folder, place):
        yield folder / file.name
        if file.content is not None:
            yield folder / file.name.rpartition(".")[0]


@cache
def _matches(path: Path, changed: int, file: Published) -> bool:
    """Whether a file is the published one; `changed` is when it was, since results are kept."""
    kind, _, known = file.checksum.rpartition(":")
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, kind or "sha256").hexdigest() == known:
            return True
    if file.content is None:
        return False
    held = path.read_bytes()
    if held.startswith(GZIP):
        try:
            held = gzip.decompress(held)
        except (OSError, EOFError, zlib.error):  # cut short, or damaged
            return False
    return hashlib.sha256(held).hexdigest() == file.content


def _resume(address: str, output: str, pooch: Any) -> None:
    """Download to a file beside the wanted one, which stays where the download is cut short."""
    part = Path(output).with_name(f"{address.rsplit('/', 1)[1]}.part")
    with _alone(part) as stream:
        if stream is None:  # another process downloads the same
            optional("pooch").HTTPDownloader(timeout=_PATIENCE)(address, output, pooch)
            return
        _append(address, stream)
        os.replace(part, output)


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO | None]:
    """Open a file to append to, or give None if another process has it open or cannot say so."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield None
        return
    with part.open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield stream


def _append(address: str, stream: BinaryIO) -> None:
    """Download what is missing of a file."""
    have = stream.tell()
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with optional("requests").get(
        address, headers=headers, stream=True, timeout=_PATIENCE
    ) as answer:
        if answer.status_code == 416:  # there is no more
            return
        answer.raise_for_status()
        if answer.status_code != 206:  # the server sends all of it
            stream.truncate(0)
        for block in answer.iter_content(_BLOCK):
            stream.write(block)
        stream.flush()
