"""A run of a chapter that is interrupted, and what a run says of itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from chapters import HEAD

SLOW = """
```{code-cell} ipython3
import time
from pathlib import Path

Path("started").touch()
time.sleep(60)
```
"""

LARGE = """
```{code-cell} ipython3
held = b"x" * (400 << 20)
del held
```
"""

#: Runs the chapter, and looks a hundred times a second whether the kernel is alive: a look while
#: it is being shut down is what makes nbclient complain.
RUN = """\
import asyncio, signal, sys
from contextlib import suppress
from nbclient import client, exceptions
from claimbook.run import execute

async def watch(self):
    with suppress(exceptions.DeadKernelError):
        while True:
            await asyncio.sleep(0.01)
            await self._async_check_alive()
    self.task_poll_for_reply.cancel()

client.NotebookClient._async_poll_kernel_alive = watch
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(execute.main(["chapter.md", "--output", "out.ipynb", "--build", ".", "--root", "."]))
"""


@pytest.mark.fault
@pytest.mark.parametrize("when", ["the kernel starts", "a cell runs"])
def test_an_interrupted_run_ends_quietly_and_leaves_nothing(tmp_path: Path, when: str) -> None:
    """A kernel could stay, or half a notebook, or a traceback that looks like a fault."""
    (tmp_path / "chapter.md").write_text(HEAD + SLOW, encoding="utf8")
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(sockets)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kernels: list[psutil.Process] = []
    deadline = time.monotonic() + 120
    while not (kernels and (when == "the kernel starts" or (tmp_path / "started").exists())):
        assert process.poll() is None and time.monotonic() < deadline
        kernels = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=60)
    assert complaints == "chapter.md: interrupted, nothing written\n"
    assert process.returncode == 130
    assert psutil.wait_procs(kernels, timeout=10)[1] == []
    assert not list(tmp_path.glob("*.ipynb")) and not list(tmp_path.glob(".*.part"))
    assert list(sockets.iterdir()) == []


def test_a_run_notes_the_memory_that_it_took(tmp_path: Path) -> None:
    """Whoever has a small machine could not know which chapters it can run."""
    (tmp_path / "chapter.md").write_text(HEAD + LARGE, encoding="utf8")
    command = [sys.executable, "-m", "claimbook.run.execute", "chapter.md", "--output=out.ipynb"]
    subprocess.run(
        [*command, "--build=.", "--root=."], cwd=tmp_path, capture_output=True, check=True
    )
    notebook = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf8"))
    assert 400 <= notebook["metadata"]["claimbook"]["memory_mib"] < 800
