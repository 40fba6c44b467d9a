"""Time per step of SGD on the sphere: the chain of the overlap, and all coordinates."""

from __future__ import annotations

import json

from common import Row, best, row
from threadpoolctl import threadpool_limits

from companion.sample_complexity.information_exponent.links import TANH
from companion.sample_complexity.information_exponent.model import SingleIndex
from companion.sample_complexity.information_exponent.models import OnlinePCA, TeacherStudent
from companion.sample_complexity.information_exponent.passage import passages
from traindyn.sgd import direct

GROUP = "SGD on the sphere, one step"
STEPS = 400_000


def chain(problem: SingleIndex) -> float:
    """Microseconds per step of the overlap alone."""

    def work(steps: int) -> None:
        passages(problem, [], c_delta=0.01, most=steps, replicas=1, rng=1, stay=True)

    work(1)
    return best(lambda: work(STEPS), STEPS, repeats=3)


def full(problem: SingleIndex, steps: int) -> float:
    """Microseconds per step of all coordinates."""
    point, h = problem.initial(rng=0), 0.01 / problem.dimension

    def work(count: int) -> None:
        direct.run(problem, point, [count * h], step_size=h, rng=1)

    work(1)
    return best(lambda: work(steps), steps, repeats=3)


def measure() -> list[Row]:
    """Measure everything, in about ten seconds."""
    with threadpool_limits(limits=1):
        ours = chain(OnlinePCA(1000, signal=1.0))
        note = "equal in law"
        rows = [row(GROUP, "overlap, PCA, N=1e3", ours, "µs per step", note, 1.0)]
        for size in (10**5, 10**7):
            value = chain(OnlinePCA(size, signal=1.0))
            rows.append(
                row(GROUP, f"overlap, PCA, N={size:.0e}", value, "µs per step", note, value / ours)
            )
        value = chain(TeacherStudent(10**5, TANH, label_noise=0.5))
        rows.append(
            row(GROUP, "overlap, tanh with label noise, N=1e5", value, "µs per step", note,
                value / ours)
        )  # fmt: skip
        for size, steps in ((1000, 20_000), (100_000, 200)):
            value = full(OnlinePCA(size, signal=1.0), steps)
            rows.append(
                row(GROUP, f"all coordinates, PCA, N={size:.0e}", value, "µs per step",
                    "reference path", value / ours)
            )  # fmt: skip
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
