"""One measured run of pellucid: ids in, ids out, on `pellucid.decode` itself."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from decode_peers.measured import Sentence, Translate, measure

from pellucid.bundle import open_bundle
from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import make_decoder
from pellucid.machine.hardware import use_threads
from pellucid.translate.model_weights import find_stored


def load(work: dict[str, Any]) -> tuple[Translate, dict[str, str]]:
    """Load the model as `translate` does; the first translation prepares what a precision needs."""
    use_threads(work["threads"])
    bundle = open_bundle(Path(work["model"]))
    stored = find_stored(bundle, work["threads"])
    decoder = make_decoder([stored or bundle.model], bundle.tokenizer)
    general = DecodingConfig(
        precision=work["precision"],
        length_penalty="average",
        alpha=1.0,
        stopping=work["stopping"],
    )

    def translate(sentences: list[Sentence], beam: int, batch: int) -> list[Any]:
        config = general.model_copy(update={"beam": beam})
        requests = [
            Request(tuple(one["ids"]), one["limit"], min_length=_minimum(one, work))
            for one in sentences
        ]
        if batch == 1:
            answers = [decoder.decode([one], config, batch_tokens=1)[0] for one in requests]
        else:
            length = statistics.mean(len(one["ids"]) for one in sentences)
            batch_tokens = round(batch * beam * length)
            answers = decoder.decode(requests, config, batch_tokens=batch_tokens)
        return [list(hypotheses[0].ids) for hypotheses in answers]

    return translate, {"path": decoder.describe(general), "threads": str(work["threads"])}


def _minimum(sentence: Sentence, work: dict[str, Any]) -> int:
    # The minimum counts </s>: with one more than the limit, </s> can never be written.
    return sentence["limit"] + 1 if work["use_minimum_length"] else 0


if __name__ == "__main__":
    measure(load)
