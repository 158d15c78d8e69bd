"""The answers of this processor, byte by byte, next to those that a result file has.

    python benchmarks/processors.py [--like FILE] [--answers FOLDER] [--out FILE]
        [--instructions NAME ...] [--threads N ...]

The demo translates 300 sentences of the built-in corpus in three precisions, greedily and with a
beam of 5 and two translations each, by one thread and by eight, with links, tokens, all their
log-probabilities and the scores; and it scores the corpus' own translations. Every set of the
processor's instructions that has multiply-add does so. PyTorch is not needed, nor imported.

Without --like the answers are compared with the newest result file, which is x86-64's. --answers
keeps them in files that `diff` can read. Exits with 1 if a byte differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pellucid
from pellucid.corpora import make_split
from pellucid.native.loading import VARIABLE, instruction_sets

RESULTS = Path(__file__).parent / "results"
SEARCHES: dict[str, dict[str, Any]] = {"greedy": {}, "beam 5": {"beam": 5, "n_best": 2}}
PRECISIONS = ("int8", "bfloat16", "float32")


def answer(threads: int, count: int) -> Iterator[tuple[str, str]]:
    """Answer all settings with some threads; yield the name of each, and its lines of JSON."""
    examples = make_split("test", count=count)
    sources = [one.source for one in examples]
    translator = pellucid.load("demo", threads=threads)
    for (name, search), precision in product(SEARCHES.items(), PRECISIONS):
        options = {**search, "precision": precision, "align": True}
        found = translator.translate(sources, **options)
        yield f"{precision}, {name}", lines(one.to_dict() for one in found)
    scored = translator.score(sources, [one.target for one in examples])
    yield "scores", lines(one.to_dict() for one in scored)


def lines(objects: Iterator[dict[str, Any]]) -> str:
    """Write an object to a line; Python writes a number with all of its bits."""
    return "".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in objects)


def main() -> int:
    """Answer, compare, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--like", type=Path, help="a result file; '' compares nothing")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--instructions", nargs="+", help="all that this processor has")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    like = options.like or max(RESULTS.glob("*-processors.json"), default=None)
    wanted = json.loads(like.read_text())["answers"] if like else {}
    seconds: dict[str, float] = {}
    different: list[str] = []
    names = instruction_sets()
    # On x86-64 portable has no multiply-add: it writes these words, with other last digits.
    if platform.machine().lower() in ("x86_64", "amd64"):
        names = names[1:] or names
    for name, threads in product(options.instructions or names, options.threads):
        os.environ[VARIABLE] = name
        start = time.perf_counter()
        for setting, text in answer(threads, options.sentences):
            digest = hashlib.sha256(text.encode()).hexdigest()
            # Without a file to compare with, the first answers are the ones wanted.
            if wanted.setdefault(setting, digest) != digest:
                different.append(f"{name}, {threads} threads, {setting}")
            if options.answers:
                options.answers.mkdir(parents=True, exist_ok=True)
                file = options.answers / f"{name}, {threads} threads, {setting}.jsonl"
                file.write_text(text, encoding="utf-8")
            print(f"{name}, {threads} threads, {setting}", flush=True)
        seconds[f"{name}, {threads} threads"] = round(time.perf_counter() - start, 1)
        print(f"{name}, {threads} threads: {seconds[f'{name}, {threads} threads']} s", flush=True)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()}, {platform.machine()}, Python {sys.version.split()[0]}",
        "sentences": options.sentences,
        "different": different,
        "seconds": seconds,
        "answers": wanted,
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
    if "torch" in sys.modules:
        different.append("PyTorch was imported")
    print("\n".join(["Different:", *different] if different else ["All answers have these bytes."]))
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
