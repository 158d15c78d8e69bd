"""Similar texts of a memory on Multi30k: a suggestion, a translation, or the beginning of one?

    MULTI30K=FOLDER python benchmarks/similar_texts.py MODEL [--out FILE]

MODEL translates English into French, for example the one that this makes:

    pellucid train $MULTI30K/train.en.gz $MULTI30K/train.fr.gz --minutes 12 -o RUN

The training text is the memory. Of the texts of the test and the validation those count that have a
similar one in it. BLEU and chrF are those of the model's translation, of the memory's, and of the
model's that begins as the memory's does: with the share of its words that the two sources begin
with in common.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import sacrebleu

from pellucid.cli.lines.translation_memory import Memory, Suggestion
from pellucid.translate.translator import load

HELD_OUT = ("test_2016_flickr", "val")


def read(name: str) -> list[str]:
    """Read the lines of a file of the data set."""
    with gzip.open(Path(os.environ["MULTI30K"]) / name, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def prefix_of(text: str, similar: Suggestion) -> str:
    """Take the part of a translation that belongs to what two sources begin with."""
    words = similar.translation.split()
    others = similar.source.split()
    pairs = list(zip(text.split(), others, strict=False))
    same = next((k for k, (one, other) in enumerate(pairs) if one != other), len(pairs))
    return " ".join(words[: same * len(words) // len(others)])


def main() -> None:
    """Find the similar texts, translate them in three ways, and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.tsv"
        pairs = zip(read("train.en.gz"), read("train.fr.gz"), strict=True)
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        started = time.perf_counter()
        memory = Memory(str(path), ("en", "fr"))
        seconds = time.perf_counter() - started
    texts = [line for name in HELD_OUT for line in read(f"{name}.en.gz")]
    references = [line for name in HELD_OUT for line in read(f"{name}.fr.gz")]
    started = time.perf_counter()
    suggestions = [memory.suggest(text) for text in texts]
    each = (time.perf_counter() - started) / len(texts)
    rows = [
        (text, reference, one)
        for text, reference, one in zip(texts, references, suggestions, strict=True)
        if one is not None
    ]
    translator = load(options.model)
    found: dict[str, list[str]] = {"model": [], "memory": [], "prefix": []}
    for text, _, similar in rows:
        plain = translator.translate(text, beam=5).text
        begun = translator.translate(text, beam=5, prefix=prefix_of(text, similar)).text
        found["model"].append(plain)
        found["memory"].append(similar.translation)
        found["prefix"].append(begun or plain)
    targets = [[reference for _, reference, _ in rows]]
    result: dict[str, Any] = {
        "memory": len(memory.targets),
        "seconds to read": round(seconds, 2),
        "ms a text": round(1000 * each, 2),
        "texts": len(texts),
        "similar": len(rows),
    }
    for name, lines in found.items():
        bleu = sacrebleu.corpus_bleu(lines, targets).score
        chrf = sacrebleu.corpus_chrf(lines, targets).score
        result[name] = {"BLEU": round(bleu, 1), "chrF": round(chrf, 1)}
    print(json.dumps(result, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
