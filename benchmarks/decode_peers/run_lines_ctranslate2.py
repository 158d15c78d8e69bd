"""One measured run of CTranslate2: a file of tokens in, a file of tokens out, as a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ctranslate2
from side_by_side.processes import exchange, peak_megabytes


def translate_lines(work: dict[str, Any]) -> dict[str, Any]:
    """Translate the first lines of a file, with greedy search, a batch at a time."""
    translator = ctranslate2.Translator(
        work["model"],
        device="cpu",
        compute_type=work["precision"],
        inter_threads=work["workers"],
        intra_threads=work["threads"],
    )
    started, count = time.perf_counter(), 0
    with Path(work["source"]).open() as source, Path(work["target"]).open("w") as target:
        for result in translator.translate_iterable(
            _tokens(islice(source, work["lines"])),
            max_batch_size=work["batch"],
            batch_type="examples",
            beam_size=1,
        ):
            target.write(" ".join(result.hypotheses[0]) + "\n")
            count += 1
    return {
        "seconds": time.perf_counter() - started,
        "lines": count,
        "peak_megabytes": peak_megabytes(),
        "versions": {"ctranslate2": ctranslate2.__version__},
    }


def _tokens(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        yield line.split()


if __name__ == "__main__":
    exchange(translate_lines)
