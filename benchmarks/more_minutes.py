"""Measure what more minutes of training buy: one command, `pellucid train TABLE --minutes N`.

    MULTI30K=DIR python benchmarks/more_minutes.py --minutes 5 20 60 240 --pairs 29000
    python benchmarks/more_minutes.py --minutes 5 20 60 240 --pairs 230000 \\
        --name "real prose" --languages en fr --train T.en T.fr --test H.en H.fr

The first line trains on Multi30k's captions, raw English to German, and scores test_2016_flickr;
the second on any two files of lines. Of the text the first ``--pairs`` are taken. Only the minutes
are set, as a user would do: the command sets sentences aside, chooses the model and the course, and
its best model translates the test text with the default search.

One file holds all cells, results/more-minutes.json, each with its date and machine. A cell that is
there is not measured again, unless ``--again`` is given. ``python docs/make_measured.py`` makes the
table of the guide of it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from side_by_side.machine import describe
from speedrun import processor_seconds, run_command

OUT = Path(__file__).parent / "results" / "more-minutes.json"
CAPTIONS = "captions (Multi30k)"


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, plain or gzip."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def write_table(files: Sequence[Path], count: int, path: Path) -> int:
    """Write the first pairs of two files as a table; return their number.

    Pairs with a tab inside, which a table cannot hold, are left out.
    """
    pairs = zip(*map(lines_of, files), strict=True)
    whole = (pair for pair in pairs if not any("\t" in side for side in pair))
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for pair in islice(whole, count):
            file.write("\t".join(pair) + "\n")
            written += 1
    return written


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells the cells apart."""
    return (row["text"], *row["languages"], row["pairs"], row["minutes"], row["device"])


def measure(given: argparse.Namespace, minutes: float, folder: Path) -> dict[str, Any]:
    """Train for so many minutes, and score the test text."""
    table = folder / "pairs.tsv"
    used_pairs = write_table(given.train, given.pairs, table)
    run = folder / "run"
    source, target = given.languages
    words = ["train", str(table), "--source-language", source, "--target-language", target]
    words += ["--minutes", f"{minutes:g}", "-o", str(run), "--device", given.device]
    if given.threads:
        words += ["--threads", str(given.threads)]
    began = time.monotonic()
    used = processor_seconds()
    run_command(words)
    took = time.monotonic() - began
    processor = processor_seconds() - used
    files = ("--source", str(given.test[0]), "--reference", str(given.test[1]))
    scores = json.loads(run_command(["evaluate", str(run), *files, "--json"]))
    logged = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    manifest = json.loads((run / "bundle" / "manifest.json").read_text(encoding="utf-8"))
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "text": given.name,
        "languages": list(given.languages),
        "pairs": given.pairs,
        "used_pairs": used_pairs,
        "minutes": minutes,
        "device": given.device,
        "command": f"pellucid train pairs.tsv --source-language {source} --target-language "
        f"{target} --minutes {minutes:g}",
        "took_minutes": took / 60,
        "processor_minutes": processor / 60,
        "updates": max(json.loads(line).get("step", 0) for line in logged),
        "best_step": manifest["training"]["step"],
        "validation_bleu": manifest["metrics"].get("validation_bleu"),
        "test": {name: scores[name] for name in ("bleu", "chrf")},
        "machine": describe(),
        "threads": given.threads,
        "note": given.note,
    }


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--minutes", type=float, nargs="+", required=True)
    add("--pairs", type=int, nargs="+", required=True)
    add("--name", default=CAPTIONS, help="of the text, in the table")
    add("--languages", nargs=2, default=("en", "de"), metavar="CODE")
    add("--train", type=Path, nargs=2, metavar="FILE", help="default: Multi30k's")
    add("--test", type=Path, nargs=2, metavar="FILE")
    add("--device", default="cpu")
    add("--threads", type=int, help="default: as many as the machine has")
    add("--note", default="", help="about the machine, such as: busy")
    add("--again", action="store_true", help="measure cells that are in the file as well")
    add("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    if (given.train is None) != (given.test is None):
        parser.error("--train and --test must be given together")
    if given.train is None:
        if "MULTI30K" not in os.environ:
            parser.error("MULTI30K must be set to the folder of Multi30k, or --train given")
        data = Path(os.environ["MULTI30K"])
        given.train = [data / f"train.{code}.gz" for code in given.languages]
        given.test = [data / f"test_2016_flickr.{code}.gz" for code in given.languages]
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the cells that the file lacks, and write it after each."""
    given = parse(arguments)
    asked = given.pairs
    rows: list[dict[str, Any]] = []
    if given.out.is_file():
        rows = json.loads(given.out.read_text(encoding="utf-8"))["rows"]
    for pairs in asked:
        for minutes in sorted(given.minutes):
            given.pairs = pairs
            wanted = (given.name, *given.languages, pairs, minutes, given.device)
            if wanted in map(key_of, rows) and not given.again:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = measure(given, minutes, Path(folder))
            rows = [one for one in rows if key_of(one) != key_of(row)] + [row]
            rows.sort(key=key_of)
            text = json.dumps({"rows": rows}, indent=2, ensure_ascii=False)
            given.out.write_text(text + "\n", encoding="utf-8")
            print(f"{pairs:,} pairs, {minutes:g} min: BLEU {row['test']['bleu']['score']:.1f}")


if __name__ == "__main__":
    main()
