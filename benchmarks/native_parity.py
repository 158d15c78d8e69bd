"""The engine in C next to the search on PyTorch, and next to itself, at full count.

python benchmarks/native_parity.py [--model demo] [--sentences 10000] [--input FILE]
python benchmarks/native_parity.py --size base [--sentences 2000] [--batched 200] [--searches NAME]

- float32: tokens equal to those on PyTorch, greedy, with a beam of 5, sampled, and with diverse
  groups, whose search is in Python; the largest difference of a log-probability. If tokens differ,
  the log-probabilities of the two translations say whether rounding decided a tie. A sample may
  differ if rounding moves the edge between two tokens past the random number.
- float32 and int8: the same bits one by one, in batches, with 1 to 4 threads, and with every set of
  instructions of this machine that has multiply-add.

Without --input, the sentences are those of the built-in corpus. With --size the model has random
weights, and the sentences are random tokens: up to 30, translated into 24. --batched sentences are
compared with themselves in other batches. The tests do the same with tiny models of odd sizes.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from decode_peers.subjects import TARGET_TOKENS, make_random
from side_by_side.results import write_result

from pellucid.bundle import load_bundle, resolve_model
from pellucid.config import DecodingConfig
from pellucid.corpora import make_split
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.native import NativePath
from pellucid.native.loading import VARIABLE, instruction_sets

SEARCHES: dict[str, dict[str, Any]] = {
    "beam 1": {},
    "beam 5": {"beam": 5},
    "sample": {"sample": True},
    "diverse groups": {"beam": 4, "diverse_groups": 2},
}

TIE = 1e-4
"""Rounding decides between translations whose log-probabilities differ by less, or between the
tokens at which they part."""


def main() -> None:
    """Compare, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--input", type=Path, help="one sentence a line")
    parser.add_argument("--size", choices=("tiny", "small", "base"), help="with random weights")
    parser.add_argument("--batched", type=int, default=1000)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.size is not None:
        with tempfile.TemporaryDirectory() as folder:
            bundle = make_random(arguments.size, Path(folder) / "bundle")
        requests = draw_requests(bundle, arguments.sentences)
    else:
        bundle = load_bundle(resolve_model(arguments.model))
        requests = read_requests(bundle, arguments.input, arguments.sentences)
    model = arguments.size or arguments.model
    results: dict[str, Any] = {"model": model, "sentences": len(requests)}
    for name in arguments.searches:
        config = DecodingConfig.model_validate(SEARCHES[name])
        results[f"PyTorch, {name}"] = compare_with_pytorch(bundle, requests, config)
        print(f"{name}: {results[f'PyTorch, {name}']}", flush=True)
    few = requests[: arguments.batched]
    for precision in ("float32", "int8") if few else ():
        for beam in (1, 5):
            config = DecodingConfig(beam=beam, precision=precision)
            results[f"{precision}, beam {beam}"] = found = compare_with_itself(bundle, few, config)
            print(f"{precision}, beam {beam}: {found}", flush=True)
    write_result("native-parity", results, (), arguments.out)


def read_requests(bundle: Any, path: Path | None, count: int) -> list[Request]:
    """Make requests of the first sentences of a file, or of the built-in corpus."""
    if path is None:
        lines = [example.source for example in make_split("train", count=count)]
    else:
        lines = path.read_text(encoding="utf-8").splitlines()[:count]
    encoded = bundle.tokenizer.encode_sources(lines)
    return [
        Request(tuple(ids), max_length=2 * len(ids) + 20, key=str(line))
        for line, ids in enumerate(encoded)
    ]


def draw_requests(bundle: Any, count: int) -> list[Request]:
    """Draw sentences of random tokens."""
    dice, size = random.Random(1), bundle.config.model.source_vocabulary_size
    end = bundle.config.tokenizer.eos_id
    return [
        Request(
            (*(dice.randrange(4, size) for _ in range(dice.randrange(1, 31))), end),
            max_length=TARGET_TOKENS,
            key=str(number),
        )
        for number in range(count)
    ]


def on_pytorch(bundle: Any, requests: list[Request], config: DecodingConfig) -> list[Any]:
    """Search on PyTorch, whatever the engine computes."""
    with patch.object(NativePath, "find_obstacle", return_value="PyTorch is asked for"):
        decoder = make_decoder([bundle.model], bundle.tokenizer)
        return decoder.decode(requests, config, batch_tokens=4096)


def compare_with_pytorch(
    bundle: Any, requests: list[Request], config: DecodingConfig
) -> dict[str, Any]:
    """Count translations with other tokens, and measure log-probabilities of the same ones."""
    decoder = make_decoder([bundle.model], bundle.tokenizer)
    obstacle = decoder.find_obstacle(config.precision)
    if obstacle is not None:
        raise SystemExit(f"The engine does not compute this: {obstacle}.")
    start = time.perf_counter()
    found = decoder.decode(requests, config, batch_tokens=4096)
    middle = time.perf_counter()
    wanted = on_pytorch(bundle, requests, config)
    end = time.perf_counter()
    different, ties, largest = 0, 0, 0.0
    for (ours, *_), (theirs, *_) in zip(found, wanted, strict=True):
        if ours.ids != theirs.ids:
            different += 1
            ties += min(abs(ours.score - theirs.score), gap_where_they_part(ours, theirs)) < TIE
            continue
        pairs = zip(ours.token_log_probabilities, theirs.token_log_probabilities, strict=True)
        largest = max(largest, *(abs(one - other) for one, other in pairs))
    return {
        "other tokens": different,
        "of them ties": ties,
        "largest difference of a log-probability": largest,
        "seconds of the engine": middle - start,
        "seconds of PyTorch": end - middle,
    }


def gap_where_they_part(ours: Hypothesis, theirs: Hypothesis) -> float:
    """Compute the difference of the log-probabilities of the first tokens that are not the same."""
    pairs = zip(ours.ids, theirs.ids, strict=False)
    place = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    if place is None:  # one ends, the other continues
        return math.inf
    return abs(ours.token_log_probabilities[place] - theirs.token_log_probabilities[place])


def compare_with_itself(
    bundle: Any, requests: list[Request], config: DecodingConfig
) -> dict[str, int]:
    """Count answers that are not the same bits in other batches and on other instructions."""
    differences: dict[str, int] = {}
    wanted: list[Any] | None = None
    for name in instruction_sets():
        if name == "portable":  # It may have no multiply-add, which rounds once.
            continue
        os.environ[VARIABLE] = name
        decoder = make_decoder([bundle.model], bundle.tokenizer)
        wanted = wanted or decoder.decode(requests, config, batch_tokens=4096)
        alone = [decoder.decode([one], config, batch_tokens=1)[0] for one in requests]
        differences[f"{name}, one by one"] = count_different(alone, wanted)
        for positions in (64, 1024, 65_536):
            found = decoder.decode(requests, config, batch_tokens=positions)
            differences[f"{name}, {positions} positions"] = count_different(found, wanted)
        for threads in (1, 2, 4):
            found = with_threads(decoder, requests, config, threads)
            differences[f"{name}, {threads} threads"] = count_different(found, wanted)
    os.environ.pop(VARIABLE, None)
    return differences


def with_threads(
    decoder: Decoder, requests: list[Request], config: DecodingConfig, threads: int
) -> list[Any]:
    """Search with a number of threads, also with more than there are processors."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return decoder.decode(requests, config, batch_tokens=4096)
    finally:
        torch.set_num_threads(before)


def count_different(found: list[Any], wanted: list[Any]) -> int:
    """Count the answers that differ in a token, or in a bit of a number."""
    return sum(one != other for one, other in zip(found, wanted, strict=True))


if __name__ == "__main__":
    main()
