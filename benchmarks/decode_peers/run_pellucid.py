"""One measured run of pellucid: ids in, ids out, on `pellucid.decode` itself.

Each of several workers has the whole batch size, as with CTranslate2.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import torch
from decode_peers.measured import Sentence, Translate, measure

from pellucid.bundle import load_bundle
from pellucid.config import DecodingConfig
from pellucid.decode import Decoder, Request, SpecialIds
from pellucid.decode.workers import WorkerPool
from pellucid.lines.workers import make_workers


def load(work: dict[str, Any]) -> tuple[Translate, dict[str, str]]:
    """Load the model in every process; the first translation prepares what a precision needs."""
    bundle = load_bundle(Path(work["model"]))
    ids = bundle.config.tokenizer
    never = {ids.pad_id, ids.target_start_id} - {ids.eos_id}
    special = SpecialIds(ids.target_start_id, ids.eos_id, tuple(never))
    decoder: Decoder | WorkerPool = Decoder([bundle.model], special)
    workers, threads = work["workers"], torch.get_num_threads()
    if workers > 1:
        decoder = make_workers([bundle], workers)
        decoder.start()
        threads = decoder.threads
    config = DecodingConfig(
        beam=work["beam"],
        precision=work["precision"],
        length_penalty="average",
        alpha=1.0,
        stopping=work["stopping"],
    )

    def translate(sentences: list[Sentence]) -> list[Any]:
        requests = [
            Request(tuple(one["ids"]), one["limit"], min_length=_minimum(one, work))
            for one in sentences
        ]
        if work["batch"] == 1:
            answers = [decoder.decode([one], config, batch_tokens=1)[0] for one in requests]
        else:
            length = statistics.mean(len(one["ids"]) for one in sentences)
            batch_tokens = round(work["batch"] * work["beam"] * length)
            answers = decoder.decode(requests, config, batch_tokens=batch_tokens)
        return [list(hypotheses[0].ids) for hypotheses in answers]

    return translate, {
        "torch": torch.__version__,
        "workers x threads": f"{workers} x {threads}",
    }


def _minimum(sentence: Sentence, work: dict[str, Any]) -> int:
    # The minimum counts </s>: with one more than the limit, </s> can never be written.
    return sentence["limit"] + 1 if work["use_minimum_length"] else 0


if __name__ == "__main__":
    measure(load)
