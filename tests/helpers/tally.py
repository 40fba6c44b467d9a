"""How many odd calls were tried and how many faults injected, over all tests of a run.

An odd call has a bad argument, or a valid one in a form that few have tried: shared, in another
layout or unit, or in several threads at once.

A test counts what it tries with :func:`tried` and :func:`fault`. What was counted while a test ran
goes along with its report, also from the workers of pytest-xdist, and the sum stands at the end of
pytest's summary. A test that is marked ``fault`` and does not count its faults itself has injected
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

#: Under which name the counts of a test are in its report.
PROPERTY = "tally"
#: The counts of the test that runs.
_counts: Counter[str] = Counter()


def tried(outcome: str) -> None:
    """Count an odd call that was `accepted`, `refused` by name, or did anything else."""
    if outcome not in ("accepted", "refused", "else"):
        raise ValueError(f"outcome must be accepted, refused or else, got {outcome!r}")
    _counts[outcome] += 1


def fault(count: int = 1) -> None:
    """Count faults that are injected: a damaged file, a full disk, a killed worker."""
    _counts["faults"] += count


class Tally:
    """The plugin that carries the counts from the tests to the summary."""

    def __init__(self) -> None:
        self.sum: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Give the test's report what is counted while it runs."""
        _counts.clear()
        try:
            return (yield)
        finally:
            if "faults" not in _counts and item.get_closest_marker("fault"):
                fault()
            if _counts["faults"]:
                _counts["tests with faults"] = 1
            item.user_properties.append((PROPERTY, dict(_counts)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a test has counted; a test that was skipped has injected nothing."""
        if report.when == "call" and not report.skipped:
            for name, value in report.user_properties:
                if name == PROPERTY and isinstance(value, dict):
                    self.sum.update(value)

    def line(self) -> str:
        """Return the line of the summary."""
        outcomes = [self.sum[each] for each in ("accepted", "refused", "else")]
        other = f"; neither: {outcomes[2]}" if outcomes[2] else ""
        return (
            f"odd calls tried: {sum(outcomes)}; accepted: {outcomes[0]}; "
            f"refused by name: {outcomes[1]}{other}; "
            f"faults injected: {self.sum['faults']}, by {self.sum['tests with faults']} tests"
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the line if anything was counted."""
        if self.sum:
            terminalreporter.write_line(self.line())
