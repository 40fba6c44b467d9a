"""The package as a whole."""

from pathlib import Path

from traindyn.problems import two_layer


def test_the_table_lists_every_file():
    """No file without a row, no row without a file."""
    files = {file.stem for file in Path(two_layer.__path__[0]).glob("[a-z]*.py")} - {"mixture"}
    lines = (two_layer.__doc__ or "").splitlines()
    rows = {line.split("`")[1] for line in lines if line.startswith("`")}
    assert rows == files
