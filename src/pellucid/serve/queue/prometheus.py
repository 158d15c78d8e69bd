"""Counts and times for Prometheus. No label holds text, keys or addresses."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """All figures of one server."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        times = partial(Histogram, registry=registry, buckets=_SECONDS)
        sizes = partial(Histogram, registry=registry, buckets=_SIZES)
        labels = ["method", "route", "status"]
        self.requests = counter("pellucid_requests", "Requests answered.", labels)
        self.seconds = times(
            "pellucid_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route"],
        )
        self.running = gauge("pellucid_requests_running", "Requests not yet answered.")
        self.gone = counter("pellucid_clients_gone", "Clients that left before the answer.")
        self.waiting = gauge("pellucid_queue_requests", "Requests that wait.")
        self.waiting_tokens = gauge("pellucid_queue_tokens", "Estimated positions that wait.")
        self.texts = counter("pellucid_texts", "Texts computed.", ["model", "task"])
        self.batch_texts = sizes("pellucid_batch_texts", "Texts computed together.")
        self.batch_seconds = times("pellucid_batch_seconds", "Time of one batch.")
        self.computing = gauge("pellucid_computations", "Computations that have begun.")
        self.stopped = counter(
            "pellucid_computations_stopped",
            "Computations ended after their clients had left or the time was up.",
        )
        self.shed = counter("pellucid_requests_shed", "Requests refused with 429.")

    def write(self) -> bytes:
        """Write all figures in the text format of Prometheus."""
        return generate_latest(self.registry)
