"""Slots for requests: how many run at once, and when the next one starts, as `Load` allows."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import ceil, exp, sqrt

from multimodal_eval.core.metric_failures import RETRYABLE
from multimodal_eval.generate.protocol import MalformedReplyError

__all__ = ["Controller", "Load", "Ticket"]


# How much load an endpoint takes: a controller without a clock of its own, which learns from successes and failures.
#
# The load is the number of requests at once, a real number. A fraction is kept by pacing: requests start at the rate
# `load / latency`, where the latency is the mean of the successes, so that a load below 1 is possible.
#
# - The load starts small and doubles with every round of successes, up to the first failure.
# - From then on it is judged by trials: the share of failures among the next 20 or more requests. No more failures than
#   usual: the load grows by a small step; beyond the load of the last failures the steps double. More failures than
#   usual: the load falls by the excess share, which is the share of the requests that the endpoint did not take.
# - Failures at about the same load as before confirm it: it is tried again after twice as many trials as the last time.
# - If a lower load does not lower the share of failures, they do not depend on the load. That share is then the usual
#   one, and the load returns to what it was.
# - If only requests that started while all places were taken fail, the endpoint limits requests at once: the number of
#   places is the load, rounded. Otherwise it limits the rate, or replies arrive late, so that more are under way than
#   the endpoint works on: pacing keeps to what it takes, and the places are not a limit.
# - After many failures in a row, the endpoint is down: one request at a time tries it, after growing pauses, or after
#   the pause that the endpoint asks for. The first success brings back half of the load, which then doubles again.

FIRST = 32.0
SAME = 0.15  # of the load of the last failures: those at about the same load confirm it
LONGEST_PATIENCE = 31  # trials
SMALLEST = 0.02
TRIAL = 20  # requests of a trial, at least
SMALL_TRIAL = 8  # if the load is far below that of the last failures
LARGE_TRIAL = 60  # if some failures are usual
FAR, NEAREST = 0.85, 0.95  # of the load of the last failures
FINISHED = 0.9  # share of a trial's requests after which it is judged; the others are slow, and not failures
STEP, LARGEST_STEP = 0.03, 0.5  # growth per trial
PLACE_STEP = 0.05  # of the load, if the endpoint limits requests at once
NEAR = 1.1  # times the load of the last failures: up to there, steps stay small
EARLY = 0.75  # share of failures beyond the usual one that ends a trial early
DOWN_AFTER = 12  # failures in a row, over three latencies
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0  # seconds between two attempts at an endpoint that is down
LONGEST_ASKED = 60.0  # seconds; a longer Retry-After is tried in between
SEPARATED = 3  # failures and successes that show whether only requests beyond some number at once fail
COMPARED = 0.15  # share of failures from which a lower load is tried: does it have fewer?
LOWER = 0.7
MEASURED_EVERY = 8  # trials after which the usual share of failures is measured again, at a lower load
USUAL_AT_MOST = 0.6
UNKNOWN_LATENCY = 1.0  # seconds, before the first success
BURST = 3.0
_MEAN_OF = 200  # successes
_RECENT = 10.0  # latencies
_START, _NONE = 0, -1  # instead of the number of a trial


@dataclass(slots=True)
class Ticket:
    """A request that has started."""

    started: float
    trial: int
    level: int  # requests that ran at once when it started


@dataclass(slots=True)
class _Trial:
    """The requests that started since the last decision."""

    size: int
    first: float = 0.0  # when the first one started
    last: float = 0.0
    sent: int = 0
    finished: int = 0
    failed: int = 0
    lowest_failed: int = 0  # level
    highest_answered: int = 0

    @property
    def share(self) -> float:
        """Of the failures."""
        return self.failed / self.sent

    @property
    def is_clear(self) -> bool:
        """Whether enough have failed, and enough have not, to know whether the number at once decides."""
        return min(self.failed, self.finished - self.failed) >= SEPARATED

    @property
    def is_separated(self) -> bool:
        """Whether only requests beyond some number at once fail."""
        return self.highest_answered < self.lowest_failed

    @property
    def rate(self) -> float:
        """Requests per second."""
        return (self.sent - 1) / max(self.last - self.first, 1e-6)


class Load:
    """The load that the endpoint takes, at most `most` requests at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.load = min(FIRST, float(most))
        self.usual = 0.0  # share of failures that do not depend on the load
        self.latency = 0.0  # mean of successes, in seconds
        self.is_starting = True  # until the first failure
        self.limits_places = True  # the endpoint limits requests at once, not their rate
        self.resumes_at: float | None = None  # if the endpoint is down: when it is tried next
        self._successes = 0
        self._in_a_row = 0
        self._failing_since = 0.0
        self.before_failures = 0.0  # the load at the first of the failures in a row
        self._asked: float | None = None  # the earliest end of the pauses that the failures in a row ask for
        self._pause = FIRST_PAUSE
        self._least = 0.0  # load after the failures of the start
        self._refused_at = 0.0  # load of the last failures beyond the usual share
        self._step = STEP
        self._patience = self._waited = 0  # trials near the load of the last failures before it is raised again
        self._before: tuple[float, _Trial] | None = None  # the load and its trial, before it was lowered
        self._recent = self._seconds = self._counted_at = 0.0  # recent successes, and in how many seconds
        self._since_measured = 0
        self._number = 0
        self._trial = _Trial(TRIAL)

    @property
    def is_down(self) -> bool:
        """Whether the endpoint is tried with single requests."""
        return self.resumes_at is not None

    @property
    def places(self) -> int:
        """How many requests may run at once."""
        if self.is_down:
            return 1
        places = round(self.load) if self.is_starting or self.limits_places else ceil(self.load) + 1
        return max(1, min(places, self.most))

    @property
    def gap(self) -> float:
        """Seconds between two starts."""
        if self.is_starting or self.is_down or self.load >= self._largest:
            return 0.0
        return min(self._known_latency / self.load, LONGEST_PAUSE)

    @property
    def burst(self) -> float:
        """Starts that may follow at once, if no place was free when they were due."""
        return max(BURST, self.load / 3) if self.limits_places else BURST

    @property
    def _known_latency(self) -> float:
        return self.latency if self._successes else UNKNOWN_LATENCY

    @property
    def _largest(self) -> float:
        """The load at which only the places limit: failures end early and leave their places to others."""
        return self.most * (1.0 if self.usual == 0 else 2.0 / (1 - self.usual))

    def started(self, now: float, running: int) -> Ticket:
        """Note that a request starts while `running` others do."""
        trial = self._trial
        if self.is_starting or self.is_down or trial.sent == trial.size:
            return Ticket(now, _START if self.is_starting else _NONE, running + 1)
        trial.first = trial.first if trial.sent else now
        trial.last = now
        trial.sent += 1
        return Ticket(now, self._number, running + 1)

    def succeeded(self, ticket: Ticket, now: float, *, is_answered: bool = True) -> None:
        """Note that the endpoint has dealt with a request; only the latency of answers is measured."""
        if is_answered:
            self._successes += 1
            self.latency += (now - ticket.started - self.latency) / min(self._successes, _MEAN_OF)
            kept = self._kept(now)
            self._recent, self._seconds = self._recent * kept + 1, self._seconds * kept + now - self._counted_at
            self._counted_at = now
        if self.is_down:
            self.revive()
            return
        self._in_a_row, self._asked, self._pause = 0, None, FIRST_PAUSE
        if self.is_starting:
            self.load = min(self.load + 1, float(self.most))
        else:
            self._count(ticket, now, failed=False)

    def revive(self, least: float = 1.0) -> None:
        """Note that the endpoint is not down; the load is at least this."""
        self._in_a_row, self._asked, self._pause = 0, None, FIRST_PAUSE
        self.resumes_at = None
        self.is_starting, self.load = True, min(max(least, self.load / 2), float(self.most))
        self._restart()

    def failed(self, ticket: Ticket, now: float, retry_after: float | None = None) -> None:
        """Note the failure of a request, and the pause in seconds that the endpoint asks for."""
        if not self._in_a_row:
            self._failing_since, self.before_failures = now, self.load
        self._in_a_row += 1
        if retry_after is not None:
            end = now + min(retry_after, LONGEST_ASKED)
            self._asked = end if self._asked is None else min(self._asked, end)
        if self.is_down:
            if now >= (self.resumes_at or 0.0):  # an attempt, and not a request from before
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
                self._try_later(now)
        elif self._in_a_row >= DOWN_AFTER and now - self._failing_since >= 3 * self._known_latency:
            self._try_later(now)
        elif self.is_starting:
            self.is_starting, self._least = False, self.load / 4
            self._end_start(ticket)
        elif ticket.trial == _START and self.limits_places and ticket.level - 1 < self.load > self._least:
            self._end_start(ticket)
        else:
            self._count(ticket, now, failed=True)

    def _end_start(self, ticket: Ticket) -> None:
        """Take the load below that of a failure of the start, at most down to a quarter."""
        self.load = max(min(float(ticket.level - 1), self.load), self._least)
        self._refused_at = self.load + 1
        self._restart()

    def grow(self) -> None:
        """Double the load, because no request has failed for a while, though none may have succeeded yet."""
        if self.is_starting and not self._in_a_row:
            self.load = min(self.load * 2, float(self.most))

    def _try_later(self, now: float) -> None:
        self.resumes_at = now + self._pause if self._asked is None else max(self._asked, now)
        self._asked = None

    def _count(self, ticket: Ticket, now: float, *, failed: bool) -> None:
        if ticket.trial != self._number:
            return
        trial = self._trial
        trial.finished += 1
        if failed:
            trial.failed += 1
            trial.lowest_failed = min(ticket.level, trial.lowest_failed or ticket.level)
            trial.size = max(trial.size, TRIAL)  # a small trial is enough to grow, and not to judge failures
        else:
            trial.highest_answered = max(ticket.level, trial.highest_answered)
        is_severe = trial.sent >= max(TRIAL // 2, trial.size // 3) and self._is_severe(trial, EARLY)
        is_clear = self.limits_places and trial.is_clear and trial.is_separated
        if is_severe or is_clear or (trial.sent == trial.size and trial.finished >= FINISHED * trial.size):
            self._judge(trial, self._carried(now))
            self._restart()

    def _is_severe(self, trial: _Trial, share: float) -> bool:
        return trial.share >= self.usual + share * (1 - self.usual)

    def _kept(self, now: float) -> float:
        return exp((self._counted_at - now) / max(_RECENT * self.latency, 1e-6))

    def _carried(self, now: float) -> float:
        """How many requests that succeeded ran at once, recently: their rate times their latency."""
        seconds = self._seconds * self._kept(now) + now - self._counted_at
        return 0.0 if seconds < self.latency else self._recent * self._kept(now) / seconds * self.latency

    def _judge(self, trial: _Trial, carried: float) -> None:
        excess = trial.share - self.usual
        if self._before is not None:
            self._compare(trial, *self._before)
            self._before = None
            return
        self._since_measured += 1
        if excess > self._tolerance(trial.sent):
            self._lower(trial, excess, carried)
        else:
            self.usual += 0.2 * min(excess, 0.0)  # a higher share is believed after a comparison only
            if self.usual and self._since_measured >= MEASURED_EVERY:
                self._before, self._since_measured = (self.load, trial), 0
                self.load *= LOWER
                return
            self._raise()

    def _tolerance(self, count: int) -> float:
        return 2.5 * sqrt(self.usual * (1 - self.usual) / count)

    def _lower(self, trial: _Trial, excess: float, carried: float) -> None:
        if trial.is_clear or not trial.is_separated:
            self.limits_places = trial.is_separated
        is_known = abs(self.load - self._refused_at) <= max(SAME * self._refused_at, 1.5)
        self._patience, self._waited = min(2 * self._patience + 1, LONGEST_PATIENCE) if is_known else 0, 0
        self._refused_at, self._step = max(self.load, 1.0), STEP
        is_meant = trial.highest_answered or trial.lowest_failed >= FAR * self.places > 1
        if self.limits_places and trial.is_separated and is_meant:
            self.load = float(trial.lowest_failed - 1)
            return
        if self._is_severe(trial, EARLY):
            lower = max(self.load / 4, carried / 2)
        else:
            lower = max(self.load * (1 - excess / (1 - self.usual)), 0.95 * carried / (1 - self.usual))
            if trial.share > COMPARED and trial.sent >= TRIAL:
                self._before = (self.load, trial)
                lower = min(lower, self.load * LOWER)
        self.load = max(min(lower, self.load * 0.99), SMALLEST)

    def _compare(self, trial: _Trial, before: float, trial_before: _Trial) -> None:
        """Decide whether the failures depend on the load, after it was lowered.

        If they do, as many requests succeed as before, at most all of the fewer ones. If not, the same share succeeds.
        """
        share = trial_before.share
        ratio = min(trial.rate / trial_before.rate, self.load / before)
        if_they_do = max(0.0, 1 - (1 - share) / ratio)
        if trial.share > (share + if_they_do) / 2 and share - if_they_do > 0.05 and trial.share <= USUAL_AT_MOST:
            self.usual, self.load, self._refused_at = trial.share, before, 0.0
            self._step = LARGEST_STEP  # no load is known that is too large
            return
        if trial.share < self.usual:
            self.usual = trial.share if trial.share > self.usual / 2 else 0.0
        if trial.share < share:  # the load at which as many succeed, and no more than the share of the lower load fail
            self.load = max(self.load, 0.98 * before * (1 - share) / (1 - trial.share))

    def _raise(self) -> None:
        """Grow in large steps far below the load of the last failures, small ones near it, and doubling ones beyond."""
        if self.load > NEAR * self._refused_at:
            self._step = min(self._step * 2, LARGEST_STEP)
        if self.load < FAR * (self._refused_at - self.limits_places):
            self.load = min(self.load * (1 + LARGEST_STEP), NEAREST * self._refused_at)
            return
        if self._waited < self._patience and self.load <= self._refused_at:
            self._waited += 1
            return
        step = self._step
        if self.limits_places:  # some trials before one more place is tried
            step = max(step / 3, PLACE_STEP / self.load)
        self.load = min(self.load * (1 + step), self._largest)

    def _restart(self) -> None:
        self._number += 1
        least = SMALL_TRIAL if self.load < FAR * self._refused_at else TRIAL
        if self.usual and (self._refused_at or self.load >= self.most):
            least = LARGE_TRIAL
        self._trial = _Trial(max(least, ceil(min(self.load, self.most))))


_PATIENCE = 1.0  # seconds without a failure after which the first load is doubled, also without a success


class Controller:
    """Hands out slots. All its methods are called in one event loop; `clock` is replaced in tests."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.load = Load(most)
        self.running = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[Ticket]] = deque()
        self._due = 0.0  # when the next request may start
        self._timer: asyncio.TimerHandle | None = None
        self._growth: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many requests may run at once."""
        return self.load.places

    @property
    def has_usual_failures(self) -> bool:
        """Whether some requests fail at any load."""
        return self.load.usual > 0

    @property
    def is_down(self) -> bool:
        """Whether the endpoint has failed many times in a row."""
        return self.load.is_down

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Ticket]:
        """Wait for a slot and hold it: `async with`. How the block ends changes the load."""
        ticket = await self.enter()
        try:
            yield ticket
        except BaseException as failure:
            self.leave(ticket, failure)
            raise
        self.leave(ticket, None)

    async def enter(self) -> Ticket:
        """Wait for a slot. Cancelling the wait gives it back."""
        if not self._waiting:
            ticket = self._next()
            if ticket is not None:
                return ticket
        turn: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._wake()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.running -= 1
            self._wake()
            raise

    def leave(self, ticket: Ticket, failure: BaseException | None) -> None:
        """Give a slot back."""
        self.running -= 1
        if isinstance(failure, RETRYABLE) and not isinstance(failure, MalformedReplyError):
            self.load.failed(ticket, self._clock(), getattr(failure, "retry_after", None))
        else:
            self.load.succeeded(ticket, self._clock(), is_answered=failure is None)
        self._wake()

    def revive(self) -> None:
        """Note that the endpoint is not down: it has answered another request, so that those that fail are at fault."""
        if self.is_down:
            self.load.revive(max(FIRST, self.load.before_failures))
            self._wake()

    def _next(self) -> Ticket | None:
        """A ticket, if a request may start now; otherwise the next attempt is scheduled."""
        load, now = self.load, self._clock()
        if self.running >= load.places:
            if load.is_starting and self._growth is None:
                self._growth = asyncio.get_running_loop().call_later(_PATIENCE, self._grow)
            return None
        due = load.resumes_at if load.resumes_at is not None else self._due if load.gap else now
        if due > now:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(due - now, self._on_time)
            return None
        gap = load.gap
        self._due = max(self._due, now - load.burst * gap) + gap
        self.running += 1
        return load.started(now, self.running - 1)

    def _wake(self) -> None:
        while self._waiting:
            if self._waiting[0].done():  # cancelled
                self._waiting.popleft()
                continue
            ticket = self._next()
            if ticket is None:
                return
            self._waiting.popleft().set_result(ticket)

    def _on_time(self) -> None:
        self._timer = None
        self._wake()

    def _grow(self) -> None:
        self._growth = None
        self.load.grow()
        self._wake()
