"""A run of a chapter that is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

CHAPTER = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

```{code-cell} ipython3
:tags: [parameters]

profile = "quick"
seed = 1
```

```{code-cell} ipython3
import time
from pathlib import Path

Path("started").touch()
time.sleep(60)
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


@pytest.mark.parametrize("when", ["the kernel starts", "a cell runs"])
def test_an_interrupted_run_ends_quietly_and_leaves_nothing(tmp_path: Path, when: str) -> None:
    """A kernel could stay, or half a notebook, or a traceback that looks like a fault."""
    (tmp_path / "chapter.md").write_text(CHAPTER, encoding="utf8")
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
