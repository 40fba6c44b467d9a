"""The data sets: tiny copies of the published files from a server, and scikit-learn's digits."""

import errno
import fcntl
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from traindyn.data import (
    celeba,
    cifar10,
    digits,
    fashion_mnist,
    files,
    mnist,
    mnist_sample,
    svhn,
    usps,
)
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


def test_fashion_mnist(served, contents, tmp_path):
    """As MNIST, with names of clothes."""
    found = fashion_mnist(classes=("t-shirt", "boot"), folder=tmp_path)
    rows = np.isin(contents.labels, [0, 9])
    np.testing.assert_array_equal(np.round(255 * found.pictures), contents.grey[rows])
    np.testing.assert_array_equal(found.labels, [0, 1, 0])


def test_usps(served, contents, tmp_path):
    """Pixels from -1 to 1 and labels from 1 become pixels from 0 to 1 and digits."""
    found = usps(folder=tmp_path)
    np.testing.assert_allclose(255 * found.pictures, contents.small, atol=1e-3)
    np.testing.assert_array_equal(found.labels, contents.labels)


def test_celeba(served, contents, tmp_path):
    """The middle squares of those of a part, with and without the attribute."""
    place = tmp_path / "celeba"
    place.mkdir()
    for name in ("faces.zip", "list_attributes.txt", "list_partition.txt"):
        shutil.copy(served.folder / name, place)
    found = celeba(side=12, folder=tmp_path)
    rows = [0, 1, 4, 5, 8, 9]
    squares = contents.faces[rows, 4:16].transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(np.round(255 * found.pictures), squares)
    np.testing.assert_array_equal(found.labels, [1, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(celeba("Bald", part="test", folder=tmp_path).labels, [1, 0, 1])
    assert celeba(side=6, samples=2, rng=1, folder=tmp_path).shape == (3, 6, 6)
    with pytest.raises(
        ValueError, match="attribute must be one of 'Bald', 'Eyeglasses', got 'Hat'"
    ):
        celeba("Hat", folder=tmp_path)


def test_what_is_had_only_by_hand_says_so(served, tmp_path):
    """The address is that of a page, and nothing is asked of it."""
    with pytest.raises(ConnectionError, match=r"by hand only: see .*put list_attributes\.txt into"):
        shutil.copy(served.folder / "faces.zip", tmp_path)
        celeba(folder=tmp_path)
    assert served.asked == []


@pytest.mark.parametrize("load", [mnist, fashion_mnist, cifar10, svhn, usps, celeba])
def test_unknown_parts_are_refused(load, tmp_path):
    """Before anything is downloaded."""
    with pytest.raises(ValueError, match="part must be one of 'train', 'test', got 'all'"):
        load(part="all", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_downloads_once(served, tmp_path, capsys):
    """The second call asks for nothing; the first says what is downloaded, and on what terms."""
    place = tmp_path / "new" / "folder"
    for _ in range(2):
        svhn(folder=place)
    assert served.asked == ["/numbers.mat"]
    assert [path.name for path in place.rglob("*")] == ["svhn", "numbers.mat"]
    said = capsys.readouterr().out
    assert said.count("SVHN: downloading 1 MB") == 1
    assert "licence: for non-commercial use only; please cite Y. Netzer" in said


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("form", ["as published", "compressed anew", "raw"])
def test_files_that_are_there_are_used(served, contents, tmp_path, monkeypatch, form, nested):
    """In the folder named by the environment, together or apart, compressed or not."""
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    place = tmp_path / "mnist" if nested else tmp_path
    place.mkdir(exist_ok=True)
    for name in ("digits-images-ubyte.gz", "digits-labels-ubyte.gz"):
        content = (served.folder / name).read_bytes()
        if form == "compressed anew":
            content = gzip.compress(gzip.decompress(content), compresslevel=1, mtime=7)
        if form == "raw":
            name, content = name.removesuffix(".gz"), gzip.decompress(content)
        (place / name).write_bytes(content)
    np.testing.assert_array_equal(mnist().labels, contents.labels)
    assert served.asked == []


@pytest.mark.fault
@pytest.mark.parametrize("damage", [lambda c: c[:-9], lambda c: c[:60] + b"?" + c[61:]])
def test_a_damaged_compressed_file_is_replaced(served, contents, tmp_path, damage):
    """Cut short or changed, it cannot be decompressed; the error must not be that of gzip."""
    content = (served.folder / "digits-labels-ubyte.gz").read_bytes()
    (tmp_path / "digits-labels-ubyte.gz").write_bytes(damage(gzip.compress(content)))
    np.testing.assert_array_equal(mnist(folder=tmp_path).labels, contents.labels)


def test_a_download_goes_on(served, contents, tmp_path):
    """What was cut short is not downloaded again; the rest is asked for."""
    whole = (served.folder / "numbers.mat").read_bytes()
    for have in (len(whole) // 2, len(whole)):
        part = tmp_path / str(have) / "svhn" / "numbers.mat.part"
        part.parent.mkdir(parents=True)
        part.write_bytes(whole[:have])
        np.testing.assert_array_equal(svhn(folder=part.parents[1]).labels, contents.labels)
        assert [path.name for path in part.parent.iterdir()] == ["numbers.mat"]


@pytest.mark.fault
def test_a_download_that_is_cut_short_is_kept(served, contents, tmp_path, monkeypatch):
    """The server stops in the middle: an error, and what came stays under another name."""
    whole, handler = (served.folder / "numbers.mat").read_bytes(), served.handler
    monkeypatch.setattr(handler, "copyfile", lambda self, _, out: out.write(whole[:1000]))
    monkeypatch.setattr(files, "_BLOCK", 100)
    with pytest.raises(ConnectionError, match=r"numbers\.mat is needed, it is missing;"):
        svhn(folder=tmp_path)
    assert [path.name for path in (tmp_path / "svhn").iterdir()] == ["numbers.mat.part"]
    np.testing.assert_array_equal(svhn(folder=tmp_path).labels, contents.labels)


def test_two_may_download_at_once(served, contents, tmp_path):
    """The second does not write into the file of the first, and needs no end of the first."""
    (tmp_path / "svhn").mkdir()
    with (tmp_path / "svhn" / "numbers.mat.part").open("ab") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        np.testing.assert_array_equal(svhn(folder=tmp_path).labels, contents.labels)


@pytest.mark.fault
def test_a_full_disk_is_named(served, tmp_path, monkeypatch):
    """The error names the file that cannot be written, and none looks complete."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_append", full)
    with pytest.raises(OSError, match=r"svhn/numbers\.mat cannot be written: No space"):
        svhn(folder=tmp_path)
    assert not (tmp_path / "svhn" / "numbers.mat").exists()


@pytest.mark.fault
def test_a_damaged_file_is_replaced(served, contents, tmp_path):
    """What another program left half-written is never read."""
    (tmp_path / "numbers.mat").write_bytes(b"half")
    np.testing.assert_array_equal(svhn(folder=tmp_path).labels, contents.labels)


@pytest.mark.fault
def test_a_wrong_checksum_is_refused(served, tmp_path):
    """A server that sends something else; nothing of it stays."""
    (served.folder / "cifar.tar.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"(?s)cifar\.tar\.gz.*does not match the known hash"):
        cifar10(folder=tmp_path / "here")
    assert list((tmp_path / "here" / "cifar-10").iterdir()) == []


def _other(monkeypatch, file):
    """Have the archive of CIFAR-10 be another file."""
    monkeypatch.setattr(files, "CIFAR10", files.CIFAR10._replace(files={"archive": file}))


@pytest.mark.fault
@pytest.mark.parametrize("present", [False, True])
def test_without_a_network(served, tmp_path, monkeypatch, present):
    """The file, its address and the folder are in the message, and whether a wrong one is there."""
    gone = Published("http://127.0.0.1:9/none.tar.gz", "0" * 64, 1)
    _other(monkeypatch, gone)
    if present:
        (tmp_path / gone.name).write_bytes(b"other")
    with pytest.raises(ConnectionError) as caught:
        cifar10(folder=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "cifar-10" / "none.tar.gz") in message
    assert gone.address in message
    assert f"put it into {tmp_path / 'cifar-10'}" in message
    assert ("has another checksum" in message, "it is missing" in message) == (present, not present)


@pytest.mark.fault
def test_a_missing_file_on_the_server(served, tmp_path, monkeypatch):
    """An address that no longer exists is no reason for another kind of error."""
    address = files.CIFAR10.files["archive"].address.replace("cifar", "moved")
    _other(monkeypatch, Published(address, "0" * 64, 1))
    with pytest.raises(ConnectionError, match="404"):
        cifar10(folder=tmp_path)


def test_labels_and_images_must_match(served, write, contents, monkeypatch, tmp_path):
    """One label too few, or one that is no digit."""
    images = files.MNIST.files["train images"]
    for labels, message in (
        (contents.labels[:-1], "must hold 12 labels, got 11"),
        (contents.labels + 1, "must have labels from 0 to 9, got 1 to 10"),
    ):
        other = served.publish(f"labels-{labels.size}.gz", write.idx(labels))
        pair = {"train images": images, "train labels": other}
        monkeypatch.setattr(files, "MNIST", files.MNIST._replace(files=pair))
        with pytest.raises(ValueError, match=message):
            mnist(folder=tmp_path)


def test_published_addresses_and_checksums():
    """Names of the files as published, each with a whole checksum and none twice."""
    sets = (
        files.MNIST, files.FASHION_MNIST, files.CIFAR10, files.SVHN, files.USPS, files.CELEBA,
    )  # fmt: skip
    known = [file for data in sets for file in data.files.values()]
    four = [
        f"{part}-{what}-ubyte.gz"
        for part in ("train", "t10k")
        for what in ("images-idx3", "labels-idx1")
    ]
    assert [file.name for file in known] == [
        *four, *four, "cifar-10-binary.tar.gz", "train_32x32.mat", "test_32x32.mat", "usps.bz2",
        "usps.t.bz2", "img_align_celeba.zip", "list_attr_celeba.txt", "list_eval_partition.txt",
    ]  # fmt: skip
    assert len({file.checksum for file in known}) == len(known)
    for file in known:
        kind, _, digest = file.checksum.rpartition(":")
        assert len(bytes.fromhex(digest)) == hashlib.new(kind or "sha256").digest_size
    assert len({data.folder for data in sets}) == len(sets)
    assert all(data.licence and data.citation for data in sets)


#: SHA-256 of the files that come with the library, decompressed, as they were when
#: `test_the_sample_is_of_mnist` had compared them with the published ones.
SAMPLE = {
    "train-images": "1edb0376ad770d05deea6c696693f5882c993d72d1a2f8ea7f0e3f057f1cfb2f",
    "train-labels": "eff120e01f651c4673776d501e2c9cb8986959930f915af888eeda19e96879f6",
    "test-images": "b97c8bfeb834d8e7999eaa2d69239abe06653dc09c1e5d7eb0c974c5965bc6a9",
    "test-labels": "41cf2f530031915ba9fbb241407c369dba1acd7515053edff48cebeee8b260f4",
}


@pytest.mark.parametrize("name", SAMPLE)
def test_the_sample_of_mnist_is_as_it_was(name):
    """An image could be lost, or stand with the label of another."""
    content = (Path(files.__file__).parent / f"mnist-{name}.gz").read_bytes()
    assert hashlib.sha256(gzip.decompress(content)).hexdigest() == SAMPLE[name]


@pytest.mark.parametrize(("part", "count"), [("train", 400), ("test", 100)])
def test_the_sample_is_balanced(part, count):
    """As many of each digit."""
    found = mnist_sample(part=part)
    assert found.inputs.shape == (10 * count, 784)
    np.testing.assert_array_equal(np.bincount(found.labels), count)


@pytest.mark.skipif(not os.environ.get(files.FOLDER), reason=f"{files.FOLDER} names no folder")
@pytest.mark.parametrize(("part", "count"), [("train", 400), ("test", 100)])
def test_the_sample_is_of_mnist(part, count):
    """The first images of each digit, in the published order, with their labels."""
    whole, found = mnist(part=part), mnist_sample(part=part)
    firsts = [np.flatnonzero(whole.labels == k)[:count] for k in range(10)]
    rows = np.sort(np.concatenate(firsts))
    np.testing.assert_array_equal(found.labels, whole.labels[rows])
    np.testing.assert_array_equal(found.inputs, whole.inputs[rows])


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
