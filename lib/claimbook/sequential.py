"""A probability tested after every draw: no more is drawn than it takes to decide.

A sign test of a fixed number of runs is planned for the share that is just large enough, and wastes
draws on every larger one. Here a claim *the event has a probability above the bound* is looked at
after each draw. It is confirmed as soon as the likelihood of the outcomes so far, averaged evenly
over all probabilities above the bound, exceeds their likelihood at the bound by the factor
1/`false_alarm`. At every probability up to the bound this ratio is a supermartingale of mean at
most one, so that it ever reaches the factor with probability at most `false_alarm`, however often
one looks and whenever one stops (Ville, *Étude critique de la notion de collectif*, 1939; Robbins,
*Ann. Math. Statist.* 41, 1970).

The claim is turned down when the same ratio on the other side, against the share that is confirmed
with probability .99, reaches 1000. The chance that a repetition fails and the reach, which the
evidence states, are computed from the law of the whole procedure, turned-down claims and the limit
of draws included. Draws of several kinds, taken in turn, are tested against the hypothesis that
none of the kinds has a probability above the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import log, sqrt
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from claimbook import _validate
from claimbook._validate import Array
from claimbook.evidence import (
    Control,
    Evidence,
    Outcome,
    level,
    real_number,
    spared_one_sided,
    weigh,
)

T = TypeVar("T")
Region: TypeAlias = NDArray[np.bool_]
Decision = Literal["confirmed", "turned down", "open"]
_TURNED_DOWN = 1e-3
_MISS = 0.01


class SequentialTest:
    """That a probability exceeds a bound, decided with as few draws as possible.

    Parameters
    ----------
    bound : float
        In (0, 1).
    most : int
        Draws after which the test gives up.
    false_alarm : float
        Probability, at most, that a share up to the bound is confirmed.

    Raises
    ------
    ValueError
        If `most` draws are too few for any outcome to be confirmed.

    Examples
    --------
    Heads of a bent coin, which a test of a fixed number would have tossed 64 times:

    >>> import numpy as np
    >>> from claimbook import Control, SequentialTest
    >>> rng = np.random.default_rng(1)
    >>> test = SequentialTest(bound=0.5, most=64, false_alarm=1e-4)
    >>> tosses = test.draw(lambda: [rng.random() < 0.95], lambda toss: toss)
    >>> evidence = test.exceeds("heads", tosses, control=Control("tails", outcomes=[
    ...     not toss for toss in tosses]))
    >>> evidence.passed, evidence.control.rejected, evidence.n
    (True, True, 22)
    """

    def __init__(self, *, bound: float, most: int, false_alarm: float) -> None:
        self.bound = real_number("bound", bound)
        if not 0 < self.bound < 1:
            raise ValueError(f"bound must be in (0, 1), got {bound!r}")
        self.most = _validate.integer("most", most, least=1)
        self.false_alarm = level("false_alarm", false_alarm)
        if _ratios(self.most, self.most, self.bound) < -log(self.false_alarm):
            raise ValueError(
                f"most is too small for any outcome to be confirmed at {false_alarm:g}, got {most}"
            )

    def draw(
        self,
        some: Callable[[], Iterable[T]],
        *events: Callable[[T], bool | None],
        least: int = 0,
        kept: Iterable[T] = (),
    ) -> list[T]:
        """Draw until every event is decided, or `most` have been drawn.

        Parameters
        ----------
        some : callable
            ``some()`` returns the next draws, one or more, independent of all before. Their number
            must not depend on the number of workers.
        *events : callable
            ``event(item)`` is whether something happened in a draw; None if the draw does not
            count. Give the events of controls too.
        least : int
            Draw at least so many, for tests of a fixed number of draws: these use the first
            `least`.
        kept : iterable
            What other tests have drawn already, in its order; it comes first.

        Returns
        -------
        list
            In the order of drawing: all of `kept`, and at most `most` draws with them.

        Raises
        ------
        ValueError
            If `some` returns nothing, or `least` is not in [0, most].
        """
        least = _validate.integer("least", least, least=0, most=self.most)
        items, new = list(kept), list(kept)
        outcomes: list[list[bool]] = [[] for _ in events]
        while True:
            for event, so_far in zip(events, outcomes, strict=True):
                so_far += [bool(each) for each in map(event, new) if each is not None]
            undecided = any(self.decision(each[: self.most]) == "open" for each in outcomes)
            if len(items) >= self.most or (len(items) >= least and not undecided):
                return items
            new = list(some())[: self.most - len(items)]
            if not new:
                raise ValueError("some must return draws, got none")
            items += new

    def decision(self, outcomes: ArrayLike) -> Decision:
        """Say what the outcomes so far, in their order, decide.

        Examples
        --------
        >>> from claimbook import SequentialTest
        >>> test = SequentialTest(bound=0.5, most=64, false_alarm=1e-4)
        >>> [test.decision([True] * n) for n in (16, 17)], test.decision([False] * 5)
        (['open', 'confirmed'], 'turned down')
        """
        return self._decided(outcomes)[0]

    def _decided(self, outcomes: ArrayLike) -> tuple[Decision, int]:
        """Return the decision, and after how many draws it was taken."""
        values = _validate.numeric("outcomes", outcomes)
        if values.ndim != 1 or len(values) > self.most or np.any((values != 0) & (values != 1)):
            raise ValueError(
                f"outcomes must be at most {self.most} truth values, got {outcomes!r:.200}"
            )
        hits = np.cumsum(values).astype(int)
        draws = np.arange(len(hits))
        confirmed, turned_down = (
            region[draws, hits] for region in _regions(self.bound, self.most, self.false_alarm)
        )
        over = np.flatnonzero(confirmed | turned_down)
        if not over.size:
            return "open", len(hits)
        return "confirmed" if confirmed[over[0]] else "turned down", int(over[0]) + 1

    def exceeds(
        self, check: str, outcomes: Sequence[bool | None], *, control: Control, reason: str = ""
    ) -> Evidence:
        """Check that the probability of an event exceeds the bound.

        Parameters
        ----------
        check : str
            What is compared, in a few words.
        outcomes : sequence of bool or None
            Of each draw in its order, whether the event happened; None if the draw does not count.
            Draws beyond the first `most` are not looked at.
        control : Control
            May replace `outcomes`. It is rejected if it is turned down, or not confirmed after
            `most` draws; one that is still open is not.
        reason : str
            Where the bound comes from.

        Returns
        -------
        Evidence
            `observed` is the share of all draws that count, `expected` the bound.
        """

        def judge(outcomes: Sequence[bool | None]) -> Outcome:
            outcomes = outcomes[: self.most]
            counted = [each for each in outcomes if each is not None]
            if not counted:
                raise ValueError("outcomes must have a draw that counts")
            decided, when = self._decided(counted)
            draws, hits = len(counted), int(np.sum(counted))
            guess = (hits + 0.5) / (draws + 1)  # Jeffreys: never 0 or 1
            # Draws that do not count are as frequent among those that were left undrawn.
            within = max(draws, self.most * draws // len(outcomes))
            again = 1 - self._power(guess, within)
            return Outcome(
                observed=hits / draws,
                expected=self.bound,
                error=sqrt(self.bound * (1 - self.bound) / draws),
                n=draws,
                passed=decided == "confirmed",
                method="sequential test, likelihood averaged over the shares above the bound: "
                f"{decided} after {when} of {draws} draws, at most {self.most}",
                sampling="random",
                false_alarm=min(max(again, 0.0), 1 - 1e-9),
                false_pass=self.false_alarm,
                resolution=_reach(self.bound, self.most, self.false_alarm) - self.bound,
                departure="side",
                inconclusive=decided == "open" and len(outcomes) < self.most,
                spared=spared_one_sided(
                    float(stats.binom.sf(hits - 1, draws, self.bound)),
                    max(1 - again, 0.0),
                    self.false_alarm,
                ),
            )

        return weigh(check, "statistical", judge, control, reason=reason, outcomes=outcomes)

    def _power(self, share: float, within: int) -> float:
        """Probability that a share is confirmed within so many draws."""
        confirmed, turned_down = _regions(self.bound, self.most, self.false_alarm)
        return _law(share, confirmed[:within], turned_down[:within])


def _ratios(draws: ArrayLike, hits: ArrayLike, bound: float) -> Array:
    """Logarithm of the likelihood averaged over (bound, 1), over the likelihood at the bound."""
    n, s = np.asarray(draws, dtype=float), np.asarray(hits, dtype=float)
    beta = stats.beta(s + 1, n - s + 1)
    # The averaged likelihood is the beta function times the upper tail of the beta law.
    whole = beta.logsf(bound) - beta.logpdf(bound)
    return np.asarray(whole - log(1 - bound))


@lru_cache(maxsize=64)
def _regions(bound: float, most: int, false_alarm: float) -> tuple[Region, Region]:
    """Where a claim is confirmed, and where turned down: (draws less one, hits)."""
    n = np.arange(1, most + 1)[:, None]
    s = np.arange(most + 1)[None, :]
    possible = s <= n
    hits = np.minimum(s, n)
    confirmed: Region = possible & (_ratios(n, hits, bound) >= -log(false_alarm))
    reach = _least_share(confirmed, np.zeros_like(confirmed))
    turned_down = possible & (_ratios(n, n - hits, 1 - reach) >= -log(_TURNED_DOWN))
    return confirmed, turned_down & ~confirmed


def _law(share: float, confirmed: Region, turned_down: Region) -> float:
    """Probability that a claim is confirmed, if the event has the probability `share`."""
    here, passed = np.zeros(confirmed.shape[1]), 0.0
    here[0] = 1.0
    for yes, no in zip(confirmed, turned_down, strict=True):
        here[1:], here[0] = here[1:] * (1 - share) + here[:-1] * share, here[0] * (1 - share)
        passed += float(here[yes].sum())
        here[yes | no] = 0.0
    return passed


def _least_share(confirmed: Region, turned_down: Region) -> float:
    """Share that is confirmed with probability .99."""
    return float(
        optimize.brentq(
            lambda share: _law(share, confirmed, turned_down) - (1 - _MISS), 1e-9, 1 - 1e-12
        )
    )


@lru_cache(maxsize=64)
def _reach(bound: float, most: int, false_alarm: float) -> float:
    return _least_share(*_regions(bound, most, false_alarm))
