"""Files of compiled code that were cut short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tally
from chapters import HEAD

from claimbook.run import caches, execute, stamps

#: Compiles by Numba and by JAX; Numba keeps only what stands in a file.
COMPILED = """
import jax
import numba


@numba.njit(cache=True)
def half(x):
    return x / 2


print(half(8.0), jax.jit(lambda x: x**2 + 1)(3.0))
"""
RESULT = "4.0 10.0\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """Files of both caches after a run, and their content."""
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "compiled.py").write_text(COMPILED, encoding="utf8")
    assert run(folder).stdout == RESULT
    files = {path: path.read_bytes() for path in cached(folder)}
    assert {path.suffix for path in files} == {".nbi", ".nbc", ""}
    return files


@pytest.fixture
def folder(compiled: dict[Path, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that has both caches, whole again, and which the environment names."""
    for path, content in compiled.items():
        path.write_bytes(content)
    found = next(iter(compiled)).parents[1]
    for name, value in variables(found).items():
        monkeypatch.setenv(name, value)
    return found


def variables(folder: Path) -> dict[str, str]:
    """Environment variables that put the caches into a folder."""
    return {
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile in a process of its own."""
    return subprocess.run(
        [sys.executable, str(folder / "compiled.py")],
        env={**os.environ, **variables(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def cached(folder: Path) -> list[Path]:
    """Files of compiled code."""
    return sorted([*folder.glob("numba/*/*.nb[ic]"), *folder.glob("jax/*-cache")])


def cut(path: Path) -> None:
    """Leave the first half."""
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.fault
@pytest.mark.nightly
def test_cut_files_are_removed_and_made_again(folder: Path) -> None:
    """Every later run failed or warned until somebody found out what to delete."""
    whole = cached(folder)
    assert caches.mend(os.environ) == []
    for path in whole:
        cut(path)
    assert "UnpicklingError" in run(folder).stderr
    assert sorted(caches.mend(os.environ)) == whole
    mended = run(folder)
    assert (mended.returncode, mended.stdout, mended.stderr) == (0, RESULT, "")
    assert cached(folder) == whole
    assert caches.mend(os.environ) == []


@pytest.mark.fault
def test_wherever_a_file_is_cut_it_is_found(folder: Path) -> None:
    """The end of a cut file could look like the end of a whole one."""
    for suffix in (".nbi", ".nbc", ""):
        path = next(path for path in cached(folder) if path.suffix == suffix)
        content = path.read_bytes()
        for length in {*range(40), *range(0, len(content), len(content) // 50), len(content) - 1}:
            path.write_bytes(content[:length])
            tally.fault()
            assert caches.mend(os.environ) == [path], length
        path.write_bytes(bytes(len(content)))
        assert caches.mend(os.environ) == [path]
        path.write_bytes(content)
    assert caches.mend(os.environ) == []


def test_what_others_packed_is_told_from_what_is_damaged(tmp_path: Path) -> None:
    """JAX packs otherwise where Python can, and no file of another kind may be touched."""
    folder = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    (tmp_path / "notes.txt").write_text("kept", encoding="utf8")
    if sys.version_info < (3, 14):
        (tmp_path / "a-cache").write_bytes(b"\x28\xb5\x2f\xfd")
        assert caches.mend(folder) == []
    else:
        from compression import zstd

        packed = zstd.compress(b"code" * 100)
        (tmp_path / "a-cache").write_bytes(packed)
        assert caches.mend(folder) == []
        (tmp_path / "a-cache").write_bytes(packed[:-3])
        assert caches.mend(folder) == [tmp_path / "a-cache"]
    assert (tmp_path / "notes.txt").is_file()


@pytest.mark.fault
def test_builds_and_single_runs_mend_the_caches(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever runs one chapter, or the book, would still have to delete files by hand."""
    whole = cached(folder)
    for path in whole:
        cut(path)
    source, lines = folder / "chapter.md", []
    source.write_text(HEAD, encoding="utf8")
    execute.execute(source, folder / "a.ipynb", build=folder, root=folder, report=lines.append)
    said = {f"{path}: damaged, to be made again" for path in whole}
    assert said <= set(lines)
    for path in whole:
        path.write_bytes(b"")
    (folder / "book").mkdir()
    arguments = ["--book", str(folder / "book"), "--root", str(folder / "lib")]
    assert stamps.main([*arguments, "--build", str(folder / "quick")]) == 0
    assert said <= set(capsys.readouterr().out.splitlines())
    assert cached(folder) == []
