"""Modules that hold what was found once: written whole, or left as they are."""

import runpy

import pytest

from traindyn._records import rewrite

HEAD = '"""A record."""\n\nFOUND = {\n    "old": 1,\n}\n'


def test_a_record_keeps_its_head_and_has_the_new_entries(tmp_path):
    """Also where it is written for the first time."""
    template = tmp_path / "record.py"
    template.write_text(HEAD)
    for file in (tmp_path / "other.py", template):
        rewrite(file, template, "FOUND = {", ['    "new": 2,'])
        assert file.read_text().startswith('"""A record."""\n')
        assert runpy.run_path(str(file))["FOUND"] == {"new": 2}


def test_a_record_is_whole_after_a_failure(tmp_path):
    """Entries that break off leave the file as it was, and nothing beside it."""
    file = tmp_path / "record.py"
    file.write_text(HEAD)

    def entries():
        yield '    "new": 2,'
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        rewrite(file, file, "FOUND = {", entries())
    assert [path.name for path in tmp_path.iterdir()] == ["record.py"]
    assert file.read_text() == HEAD
