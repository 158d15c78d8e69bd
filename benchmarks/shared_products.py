"""Two threads that share the products of one sentence, and one thread: idle, and next to others.

    python benchmarks/shared_products.py [--models small base] [--seconds 10] [--others 2]

Models have random weights and compute in int8, greedy, one sentence after another. In one process
both numbers of threads take turns; the ratio is that of the medians. Others are processes that
compute without end, each in its own session.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from decode_peers.subjects import SOURCE_TOKENS, TARGET_TOKENS, make_random

from pellucid.bundle import open_bundle
from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import make_decoder
from pellucid.machine.hardware import use_threads
from pellucid.translate.model_weights import find_stored

THREADS = (1, 2)
NUM_SENTENCES = 4


def main() -> None:
    """Measure every model with nothing else running, then next to other programs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["small", "base"])
    parser.add_argument("--seconds", type=float, default=10, help="for each model, each time")
    parser.add_argument("--others", type=int, default=2, help="busy processes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            make_random(name, Path(folder) / name)
        for num_others in (0, arguments.others):
            code = [sys.executable, "-c", "while True: pass"]
            others = [subprocess.Popen(code, start_new_session=True) for _ in range(num_others)]
            try:
                for name in arguments.models:
                    speeds = measure(Path(folder) / name, arguments.seconds)
                    print(
                        f"{name}, next to {num_others} busy processes: "
                        + ", ".join(f"{speeds[n]:,.0f} tokens/s with {n}" for n in THREADS)
                        + f", {speeds[2] / speeds[1]:.2f} times",
                        flush=True,
                    )
            finally:
                for other in others:
                    other.kill()


def measure(folder: Path, seconds: float) -> dict[int, float]:
    """Return the target tokens a second by the number of threads."""
    bundle, chance = open_bundle(folder), random.Random(1)
    stored = find_stored(bundle, 1)
    decoder = make_decoder([stored or bundle.model], bundle.tokenizer)
    size = bundle.config.model.source_vocabulary_size
    requests = [
        Request(tuple(chance.randrange(4, size) for _ in range(SOURCE_TOKENS)), TARGET_TOKENS)
        for _ in range(NUM_SENTENCES)
    ]
    times: dict[int, list[float]] = {threads: [] for threads in THREADS}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for threads in THREADS:
            use_threads(threads)
            started = time.perf_counter()
            for request in requests:
                decoder.decode([request], DecodingConfig(precision="int8"), batch_tokens=1)
            times[threads].append(time.perf_counter() - started)
    tokens = NUM_SENTENCES * TARGET_TOKENS
    return {threads: tokens / statistics.median(found) for threads, found in times.items()}


if __name__ == "__main__":
    main()
