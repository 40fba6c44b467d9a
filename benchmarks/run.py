"""Run every benchmark in this folder and write ``benchmarks/results.json``.

``make benchmark`` installs what is compared with and calls this; the page *Performance*
of the book shows the committed results. Run it on a quiet machine.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import catapults
import deep
import dmft
import effective
import film
import foundations
import kernels
import parallel
import particles
import sgd
import single_index
import training

RESULTS = Path(__file__).with_name("results.json")
#: The chapter that uses most what a group of measurements is about.
CHAPTERS = {
    "Attention": "attention/particles",
    "Catapults": "catapults/many-examples",
    "Double descent": "foundations/double-descent",
    "Effective dynamics": "effective-dynamics/theorem",
    "Hessian norms of deep networks": "lazy-training/linearity",
    "Kernels of wide networks": "lazy-training/tangent-kernel",
    "Mean-field theory and full-batch descent": "phase-transitions/mean-field",
    "SGD on the sphere, one step": "sample-complexity/information-exponent",
    "SGD, one step": "alignment/training-dynamics",
    "Spectra along a run": "alignment/alignment",
    "Spectra of two layers": "alignment/xor-alignment",
    "Training with catapults": "catapults/sgd",
}
LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "torch",
    "jax",
    "optax",
    "joblib",
    "distributed",
    "curvlinops-for-pytorch",
)


def processor() -> str:
    """Name of the processor, as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def version(library: str) -> str | None:
    """Installed version of a library, None if it is missing."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Measure one module after the other, so that nothing else runs."""
    rows: list[dict[str, Any]] = []
    for module in (
        sgd,
        effective,
        dmft,
        kernels,
        deep,
        catapults,
        training,
        film,
        foundations,
        particles,
        parallel,
        single_index,
    ):
        print(f"benchmark: {module.__name__}", file=sys.stderr, flush=True)
        rows += module.measure()
    versions = {library: version(library) for library in LIBRARIES}
    result = {
        "environment": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            **{library: found for library, found in versions.items() if found},
        },
        "chapters": CHAPTERS,
        "rows": rows,
    }
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    part.replace(RESULTS)
    print(f"benchmark: wrote {RESULTS.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
