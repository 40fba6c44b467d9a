"""The data sets: tiny copies of the published files from a server, and scikit-learn's digits."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from traindyn.data import cifar10, digits, files, mnist, svhn
from traindyn.data.files import Published

OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def test_mnist(served, contents, tmp_path):
    """Rows of pixels over 255."""
    found = mnist(folder=tmp_path)
    np.testing.assert_array_equal(np.round(255 * found.pictures), contents.grey)
    np.testing.assert_array_equal(found.labels, contents.labels)
    assert (found.inputs.shape, found.shape) == ((12, 784), (28, 28))
    assert found.inputs.max() <= 1


def test_cifar10(served, contents, tmp_path):
    """Batches of unequal size are joined in their order; the test batch is another file."""
    found = cifar10(folder=tmp_path)
    np.testing.assert_array_equal(np.round(255 * found.pictures), contents.colour[::-1])
    np.testing.assert_array_equal(found.labels, contents.labels[::-1])
    assert (found.inputs.shape, found.shape, found.names) == ((12, 3072), (3, 32, 32), OBJECTS)
    test = cifar10(part="test", folder=tmp_path)
    np.testing.assert_array_equal(np.round(255 * test.pictures), contents.colour)


def test_two_classes_of_cifar10(served, contents, tmp_path):
    """CIFAR-2: aeroplanes are 0 and birds 1."""
    found = cifar10(part="test", classes=("airplane", "bird"), samples=3, folder=tmp_path)
    np.testing.assert_array_equal(found.labels, [0, 1, 1])
    np.testing.assert_array_equal(np.round(255 * found.pictures), contents.colour[[0, 2, 10]])


def test_svhn(served, contents, tmp_path):
    """Channels come first, and the label 10 is the digit 0."""
    found = svhn(folder=tmp_path)
    np.testing.assert_array_equal(np.round(255 * found.pictures), contents.colour)
    np.testing.assert_array_equal(found.labels, contents.labels)
    assert (found.shape, found.names) == ((3, 32, 32), tuple("0123456789"))


@pytest.mark.parametrize("load", [mnist, cifar10, svhn])
def test_unknown_parts_are_refused(load, tmp_path):
    """Before anything is downloaded."""
    with pytest.raises(ValueError, match="part must be one of 'train', 'test', got 'all'"):
        load(part="all", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_downloads_once(served, tmp_path):
    """The second call asks for nothing."""
    place = tmp_path / "new" / "folder"
    for _ in range(2):
        cifar10(folder=place)
    assert served.asked == ["/cifar.tar.gz"]
    assert [path.name for path in place.iterdir()] == ["cifar.tar.gz"]


def test_a_damaged_file_is_replaced(served, contents, tmp_path):
    """What another program left half-written is never read."""
    (tmp_path / "numbers.mat").write_bytes(b"half")
    np.testing.assert_array_equal(svhn(folder=tmp_path).labels, contents.labels)


def test_a_wrong_checksum_is_refused(served, tmp_path):
    """A server that sends something else; nothing of it stays."""
    (served.folder / "cifar.tar.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"(?s)cifar\.tar\.gz.*does not match the known hash"):
        cifar10(folder=tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("present", [False, True])
def test_without_a_network(served, tmp_path, monkeypatch, present):
    """The file, its address and the folder are in the message, and whether a wrong one is there."""
    gone = Published("http://127.0.0.1:9/none.tar.gz", "0" * 64)
    monkeypatch.setattr(files, "CIFAR10", gone)
    if present:
        (tmp_path / gone.name).write_bytes(b"other")
    with pytest.raises(ConnectionError) as caught:
        cifar10(folder=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "none.tar.gz") in message
    assert gone.address in message
    assert f"put it into {tmp_path}" in message
    assert ("has another checksum" in message, "it is missing" in message) == (present, not present)


def test_a_missing_file_on_the_server(served, tmp_path, monkeypatch):
    """An address that no longer exists is no reason for another kind of error."""
    other = Published(files.CIFAR10.address.replace("cifar", "moved"), "0" * 64)
    monkeypatch.setattr(files, "CIFAR10", other)
    with pytest.raises(ConnectionError, match="404"):
        cifar10(folder=tmp_path)


def test_labels_and_images_must_match(served, write, contents, monkeypatch, tmp_path):
    """One label too few, or one that is no digit."""
    images = files.MNIST["train"][0]
    for labels, message in (
        (contents.labels[:-1], "must hold 12 labels, got 11"),
        (contents.labels + 1, "must have labels from 0 to 9, got 1 to 10"),
    ):
        other = served.publish(f"labels-{labels.size}.gz", write.idx(labels))
        monkeypatch.setattr(files, "MNIST", {"train": (images, other)})
        with pytest.raises(ValueError, match=message):
            mnist(folder=tmp_path)


def test_published_addresses_and_checksums():
    """Names of the files as published, each with a whole checksum and none twice."""
    known = [*files.MNIST["train"], *files.MNIST["test"], files.CIFAR10, *files.SVHN.values()]
    assert [file.name for file in known] == [
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
        "cifar-10-binary.tar.gz",
        "train_32x32.mat",
        "test_32x32.mat",
    ]
    assert len({file.sha256 for file in known}) == len(known)
    assert all(len(bytes.fromhex(file.sha256)) == hashlib.sha256().digest_size for file in known)


def test_digits():
    """The ones of scikit-learn, from 0 to 16, brought to [0, 1]."""
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    bunch, found = datasets.load_digits(), digits()
    np.testing.assert_array_equal(16 * found.inputs, bunch.data)
    np.testing.assert_array_equal(found.labels, bunch.target)
    assert (found.shape, found.names, len(found)) == ((8, 8), tuple("0123456789"), 1797)
    assert digits(classes=(0, 1), samples=20, rng=3).signs.shape == (20,)


@pytest.mark.parametrize(("missing", "call"), [("sklearn", "digits()"), ("pooch", "svhn()")])
def test_says_what_to_install(missing, call):
    """The room can be imported without the extra; a call names it."""
    code = f"""
import sys
for name in ("{missing}", "{missing}.datasets"):
    sys.modules[name] = None
from traindyn.data import digits, svhn
try:
    {call}
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert "pip install 'traindyn[data]'" in done.stdout


def test_import_is_light():
    """Importing the room brings neither pooch nor scikit-learn."""
    code = "import sys, traindyn.data; print({'pooch', 'sklearn'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "set()"
