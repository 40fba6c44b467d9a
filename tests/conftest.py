"""What all tests share: counts of what is tried, a browser, and small networks."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tally import Tally

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from traindyn.problems.multi_index import MultiIndex

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Nothing the browser does by itself (updates, metrics) may look like a request of a page.
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)


def pytest_configure(config: pytest.Config) -> None:
    """Count odd calls and injected faults."""
    config.pluginmanager.register(Tally(), "tally")


def _find_browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _install_browser() -> str:
    """Install Chromium from Debian's packages; the reason if that cannot be done."""
    if not shutil.which("apt-get"):
        return "this is not a Debian system (no apt-get)"
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if prefix and not shutil.which("sudo"):
        return "installing it needs root"
    # Several test processes may come here at once; apt allows one.
    with (Path(tempfile.gettempdir()) / "traindyn-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _find_browser():
            return ""
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            command = [*prefix, "apt-get", "--quiet", *arguments]
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=600
                )
            except subprocess.TimeoutExpired:
                return f"`{' '.join(command)}` took more than 600 s"
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                return f"`{' '.join(command)}` failed: {''.join(last)}"
    return ""


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, installed if it is missing and may be installed."""
    from playwright.sync_api import sync_playwright

    reason = "" if _find_browser() else _install_browser()
    executable = _find_browser()
    if executable is None:
        reason = reason or f"apt-get brought none of {', '.join(BROWSERS)}"
        pytest.skip(f"Chromium is missing and could not be installed: {reason}")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable, args=list(BROWSER_OPTIONS)
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def three_neurons() -> MultiIndex:
    """Three neurons with weights and biases of their own, two directions."""
    from traindyn.activations import TANH
    from traindyn.problems.multi_index import MultiIndex, pseudo_huber, two_layer_teacher

    return MultiIndex(
        two_layer_teacher((1.0, -0.5)),
        activation=TANH,
        loss=pseudo_huber(0.7),
        second_layer=(1.0, -2.0, 0.5),
        biases=(0.3, 0.0, -0.2),
    )


@pytest.fixture(params=["plain", "weight and bias", "three neurons"])
def small_network(request: pytest.FixtureRequest, three_neurons: MultiIndex) -> MultiIndex:
    """One neuron, one with a weight and a bias, three neurons."""
    from traindyn.problems.multi_index import MultiIndex

    return {
        "plain": MultiIndex(),
        "weight and bias": MultiIndex(second_layer=[-2.0], biases=[0.4]),
        "three neurons": three_neurons,
    }[request.param]


@pytest.fixture(scope="session")
def mean_loss() -> Callable[..., Any]:
    """The mean loss of a network on its data, written out."""

    def risk(problem: Any, data: Any, theta: Any) -> Any:
        hidden = problem.activation.value(data.inputs @ theta + problem.biases)
        outputs = hidden @ problem.second_layer / problem.width
        return problem.loss.value(data.labels, outputs).mean()

    return risk
