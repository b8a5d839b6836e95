"""Counters and times of requests, in the text format of Prometheus."""

import threading
from collections import defaultdict
from typing import Final

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts requests by endpoint and code. No name of a table is in here."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = {}
        self._sums: dict[str, float] = defaultdict(float)
        self.in_flight = 0

    def count(self, endpoint: str, code: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._guard:
            self._requests[endpoint, code] += 1
            times = self._times.setdefault(endpoint, [0] * (len(_BUCKETS) + 1))
            for place, bound in enumerate(_BUCKETS):
                if seconds <= bound:
                    times[place] += 1
                    break
            else:
                times[-1] += 1
            self._sums[endpoint] += seconds

    def text(self) -> str:
        """All counters."""
        with self._guard:
            lines = [
                "# HELP emberlake_requests_total Requests by endpoint and code.",
                "# TYPE emberlake_requests_total counter",
                *(
                    f'emberlake_requests_total{{endpoint="{name}",code="{code}"}} {count}'
                    for (name, code), count in sorted(self._requests.items())
                ),
                "# HELP emberlake_requests_in_flight Requests that are being answered.",
                "# TYPE emberlake_requests_in_flight gauge",
                f"emberlake_requests_in_flight {self.in_flight}",
                "# HELP emberlake_request_seconds How long answers took.",
                "# TYPE emberlake_request_seconds histogram",
            ]
            for name, times in sorted(self._times.items()):
                total = 0
                for bound, count in zip((*_BUCKETS, "+Inf"), times, strict=True):
                    total += count
                    label = f'endpoint="{name}",le="{bound}"'
                    lines.append(f"emberlake_request_seconds_bucket{{{label}}} {total}")
                lines.append(
                    f'emberlake_request_seconds_sum{{endpoint="{name}"}} {self._sums[name]:.6f}'
                )
                lines.append(f'emberlake_request_seconds_count{{endpoint="{name}"}} {total}')
        return "\n".join(lines) + "\n"
