"""Counts and times for Prometheus. No label holds text, keys or addresses."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """All figures of one server."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "pellucid_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "pellucid_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.running = Gauge(
            "pellucid_requests_running", "Requests not yet answered.", registry=registry
        )
        self.gone = Counter(
            "pellucid_clients_gone", "Clients that left before the answer.", registry=registry
        )
        self.waiting = Gauge("pellucid_queue_requests", "Requests that wait.", registry=registry)
        self.waiting_tokens = Gauge(
            "pellucid_queue_tokens", "Estimated source tokens that wait.", registry=registry
        )
        self.texts = Counter(
            "pellucid_texts", "Texts computed.", ["model", "task"], registry=registry
        )
        self.batch_texts = Histogram(
            "pellucid_batch_texts", "Texts computed together.", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram(
            "pellucid_batch_seconds", "Time of one batch.", buckets=_SECONDS, registry=registry
        )
        self.shed = Counter(
            "pellucid_requests_shed", "Requests refused with 429.", registry=registry
        )

    def write(self) -> bytes:
        """Write all figures in the text format of Prometheus."""
        return generate_latest(self.registry)
