"""Time a decoder with recurrent units (SSRU) against the same model with self-attention, in turn.

    python benchmarks/decoder_units.py --width 256 --layers 6+2 --length 25 --rounds 5

Weights are random and every translation is as long as asked, so both write equally many tokens. The
models take turns, and each figure is the median of the rounds.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time

import torch

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.decoder import Decoder
from pellucid.model import Transformer, initialize

START, END, VOCABULARY = 2, 3, 8000


def make_decoder(width: int, layers: tuple[int, int], reader: str) -> Decoder:
    """Make a student with random weights."""
    config = ModelConfig.model_validate(
        {
            "d_model": width,
            "d_ff": 4 * width,
            "num_heads": max(1, width // 64),
            "num_encoder_layers": layers[0],
            "num_decoder_layers": layers[1],
            "decoder": reader,
            "source_vocabulary_size": VOCABULARY,
            "target_vocabulary_size": VOCABULARY,
        }
    )
    model = Transformer(config)
    initialize(model, 1)
    return Decoder([model.eval()], SpecialIds(START, END, (0, START)))


def make_requests(count: int, length: int) -> list[Request]:
    """Make sources of random words, whose translations have the same length."""
    chance = random.Random(1)
    return [
        Request(
            (*(chance.randrange(4, VOCABULARY) for _ in range(length - 1)), END),
            max_length=length,
            min_length=length,
        )
        for _ in range(count)
    ]


def main() -> None:
    """Print a line for each precision and number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", default="6+2")
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam", type=int, default=1)
    given = parser.parse_args()
    encoder, decoder = map(int, given.layers.split("+"))
    torch.set_num_threads(1)
    models = {one: make_decoder(given.width, (encoder, decoder), one) for one in READERS}
    print(f"{platform.processor() or platform.machine()}, one thread, {vars(given)}")
    for precision in ("float32", "int8"):
        config = DecodingConfig(beam=given.beam, precision=precision)
        for count in (1, 128):
            requests = make_requests(count, given.length)
            seconds: dict[str, list[float]] = {one: [] for one in READERS}
            # The first round packs weights, and is not counted.
            for number in range(given.rounds + 1):
                for name, model in models.items():
                    start = time.perf_counter()
                    model.decode(requests, config, batch_tokens=4096)
                    if number:
                        seconds[name].append(time.perf_counter() - start)
            found = {name: 1000 * statistics.median(one) for name, one in seconds.items()}
            share = found["ssru"] / found["attention"]
            print(
                f"{precision:8} {count:4} sentences: attention {found['attention']:9.1f} ms, "
                f"ssru {found['ssru']:9.1f} ms, {share:.2f} of it",
                flush=True,
            )


READERS = ("attention", "ssru")

if __name__ == "__main__":
    main()
