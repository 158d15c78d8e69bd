"""One measured run of CTranslate2: tokens in, tokens out."""

from __future__ import annotations

from typing import Any

import ctranslate2
from decode_peers.measured import Sentence, Translate, measure


def load(work: dict[str, Any]) -> tuple[Translate, dict[str, str]]:
    """Load the model with some workers of some threads each."""
    translator = ctranslate2.Translator(
        work["model"],
        device="cpu",
        compute_type=work["precision"],
        inter_threads=work["workers"],
        intra_threads=work["threads"],
    )

    def translate(sentences: list[Sentence], beam: int, batch: int) -> list[Any]:
        limit = max(one["limit"] for one in sentences)
        results = translator.translate_batch(
            [one["tokens"] for one in sentences],
            beam_size=beam,
            length_penalty=1.0,
            max_batch_size=batch,
            batch_type="examples",
            max_decoding_length=limit,
            min_decoding_length=limit if work["use_minimum_length"] else 1,
            return_end_token=True,
        )
        return [result.hypotheses[0] for result in results]

    return translate, {
        "ctranslate2": ctranslate2.__version__,
        "compute_type": translator.compute_type,
        "workers x threads": f"{work['workers']} x {work['threads']}",
    }


if __name__ == "__main__":
    measure(load)
