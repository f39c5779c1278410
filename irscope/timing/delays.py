"""How long loads wait at L2 and at DRAM because others use them."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from irscope.device.clocks import Clock

__all__ = ["Utilisation", "dram_delay", "l2_delay"]

_MEMORY_SPAN = 2000.0
"""Cycles over which the utilisation of DRAM, and of L2, is averaged."""
_MOST_CROWDED = 4.0
"""What the spread of its latencies grows with, at most: it was measured up to a utilisation of 0.76."""
_MOST_USED = 0.95
"""Utilisation of DRAM above which its queue grows no further: the requests in flight limit it."""


def dram_delay(clock: Clock, used: float, writing: float, sectors: float) -> float:
    """Cycles beyond the latency of an idle DRAM until the last of some sectors is there.

    Requests of all multiprocessors arrive unevenly: their mean wait grows with u / (1 - u) for a utilisation u, as in
    an M/D/1 queue, and that of the last one with the logarithm of how many there are. Against the microbenchmarks
    `memory` and `mixed`: `tests/timing/test_delays.py`.

    Args:
        clock: the part.
        used: the utilisation of DRAM, 0 to 1.
        writing: the part of the time in which it writes.
        sectors: those that are waited for together.
    """
    used = min(used, _MOST_USED)
    crowd = used / (1 - used)
    spread = clock.dram_queue_spread * min(crowd, _MOST_CROWDED)
    last = clock.dram_spread + spread + clock.dram_write_spread * writing
    return clock.dram_queue * crowd + last * log(max(sectors, 1.0))


def l2_delay(clock: Clock, used: float, sectors: float) -> float:
    """Cycles beyond the latency of an idle L2 until the last of some sectors is there.

    As of DRAM; against the microbenchmark `together`: `tests/timing/test_delays.py`.
    """
    crowd = min(used / max(1 - used, 1e-9), _MOST_CROWDED)
    return clock.l2_queue_spread * crowd * log(max(sectors, 1.0))


@dataclass(slots=True)
class Utilisation:
    """How much of a memory is used."""

    at: float = 0.0
    """The time of the last access."""
    until: float = 0.0
    """Until when it was busy then."""
    used: float = 0.0
    """The part of the time before that it was busy."""
    stored: float = 0.0
    """Cycles that were stored since."""
    writing: float = 0.0
    """The part of the time in which it was written."""

    def follow(self, time: float, until: float) -> None:
        """Follow it up to a time, from which on it is busy until another one."""
        since = time - self.at
        if since > 0:
            busy = min(max(self.until - self.at, 0.0), since) / since
            writing = min(self.stored / since, busy)
            fresh = 1 - exp(-since / _MEMORY_SPAN)
            self.used += (busy - self.used) * fresh
            self.writing += (writing - self.writing) * fresh
            self.at, self.stored = time, 0.0
        self.until = until
