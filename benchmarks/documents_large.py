"""Large documents, a large memory, and kills, with a translator that answers at once.

    python benchmarks/documents_large.py table [--size 1000000]     # rows of a CSV
    python benchmarks/documents_large.py memory [--size 1000]       # megabytes of a TMX
    python benchmarks/documents_large.py search [--size 200000]     # units of a memory
    python benchmarks/documents_large.py kills [--size 50]

The first two translate a document of this size and one of a tenth, each in a new process,
and print the time and the largest memory of both. Every twentieth unit of the TMX lacks a
translation. The third makes a memory and prints the processor time of searches for texts with an
equal one, with a similar one and with none. The last kills a command with SIGKILL again and again
while it translates a document, starts it again, and compares the output with that of a command that
was not interrupted. --out FILE adds the figures to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documents import WORDS

from pellucid.documents.formats import FORMATS
from pellucid.documents.units import How, Unit

ROOT = Path(__file__).resolve().parents[1]


def stand_in(arguments: list[str]) -> int:
    """Run the command with a translator that writes capitals."""
    sys.path.insert(0, str(ROOT / "tests" / "shared"))
    from echoing import Echo

    import pellucid.translate.translator
    from pellucid.cli.main import main as command

    echo = Echo(calls=deque(maxlen=1))  # type: ignore[arg-type]  # It must keep no text.
    pellucid.translate.translator.load = lambda *_, **__: echo  # type: ignore[assignment]
    sys.argv = ["pellucid", *arguments]
    return command() or 0


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command in a new process."""
    command = [sys.executable, __file__, "stand-in", *arguments]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def write_table(path: Path, size: int) -> None:
    """Write a CSV of so many rows."""
    rng = random.Random(1)
    with path.open("w") as stream:
        stream.write("id,text\n")
        for number in range(size):
            stream.write(f'{number},"{" ".join(rng.choices(WORDS, k=4))} {number % 1000}"\n')


def write_memory(path: Path, size: int) -> None:
    """Write a TMX of so many megabytes."""
    rng = random.Random(1)
    with path.open("w") as stream:
        stream.write('<tmx version="1.4"><header srclang="en"/><body>\n')
        number, written = 0, 0
        while written < size * 1_000_000:
            own = " ".join(rng.choices(WORDS, k=80))
            target = f'<tuv xml:lang="fr"><seg>{own}</seg></tuv>' if number % 20 else ""
            unit = f'<tu tuid="{number}">\n<tuv xml:lang="en"><seg>{own}</seg></tuv>{target}</tu>\n'
            written += stream.write(unit)
            number += 1
        stream.write("</body></tmx>\n")


def measure(folder: Path, name: str, write: Callable[[Path, int], None], size: int) -> Any:
    """Translate a document and a tenth of it, one after the other."""
    results = []
    for one in (size // 10, size):
        path, output = folder / f"in{name}", folder / f"out{name}"
        write(path, one)
        began = time.monotonic()
        process = start("translate", "m", "-i", str(path), "-o", str(output), "--overwrite")
        _, status, usage = os.wait4(process.pid, 0)
        how = How(languages=("en", "fr"))
        with output.open() as stream:
            left = sum(isinstance(part, Unit) for part in FORMATS[name[1:]].read(stream, how))
        results.append(
            {
                "size": one,
                "megabytes": round(path.stat().st_size / 1e6, 1),
                "seconds": round(time.monotonic() - began),
                "peak_mib": usage.ru_maxrss // 1024,
                "exit": os.waitstatus_to_exitcode(status),
                "units_without_a_translation": left if name == ".tmx" else None,
            }
        )
        print(results[-1], flush=True)
        path.unlink()
        output.unlink()
    return results


def search(folder: Path, size: int) -> Any:
    """Search a memory of so many units."""
    from pellucid.cli.lines.translation_memory import Memory

    rng = random.Random(1)
    texts = {" ".join(rng.choices(WORDS, k=rng.randint(3, 30))) + f" {k}" for k in range(size)}
    path = folder / "memory.tsv"
    path.write_text("".join(f"{one}\t{one.upper()}\n" for one in sorted(texts)))
    began = time.monotonic()
    memory = Memory(str(path), ("en", "fr"))
    results: dict[str, Any] = {"units": len(texts), "load_seconds": time.monotonic() - began}
    wanted = rng.sample(sorted(texts), 200)
    kinds = {
        "equal": wanted,
        "similar": [f"{one} more" for one in wanted],
        "none": [" ".join(rng.choices(WORDS, k=rng.randint(3, 30)))[::-1] for _ in wanted],
    }
    for kind, own in kinds.items():
        times, num_found = [], 0
        for text in own:
            document = json.dumps({"a": text})
            (unit,) = (u for u in FORMATS["json"].read(document, How()) if isinstance(u, Unit))
            began = time.process_time()
            is_equal = memory.write(unit.segments[0])
            num_found += is_equal or memory.suggest(text) is not None
            times.append(1000 * (time.process_time() - began))
        median, largest = statistics.median(times), max(times)
        results[kind] = {"median_ms": round(median, 2), "max_ms": round(largest, 2)}
        results[kind]["found"] = num_found
    print(results)
    return results


def kill(folder: Path, size: int) -> Any:
    """Kill a command so many times."""
    rng = random.Random(1)
    path, whole, output = folder / "in.po", folder / "whole.po", folder / "out.po"
    entries = (f'msgid "the {k} %s"\nmsgstr ""\n\n' for k in range(300 * size))
    path.write_text("".join(entries))
    began = time.monotonic()
    start("translate", "m", "-i", str(path), "-o", str(whole)).communicate()
    seconds = time.monotonic() - began
    num_kills = num_runs = 0
    while num_kills < size:
        num_runs += 1
        process = start("translate", "m", "-i", str(path), "-o", str(output), "--overwrite")
        try:
            process.communicate(timeout=rng.uniform(0.3, 1) * seconds)
            assert output.read_bytes() == whole.read_bytes(), "other bytes"
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            num_kills += 1
    process = start("translate", "m", "-i", str(path), "-o", str(output), "--overwrite")
    process.communicate()
    is_equal = output.read_bytes() == whole.read_bytes()
    results = {"kills": num_kills, "runs": num_runs + 1, "equal": is_equal, "seconds": seconds}
    print(results)
    return results


def main() -> int:
    """Run one of the measurements."""
    if sys.argv[1:2] == ["stand-in"]:
        return stand_in(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("table", "memory", "search", "kills"))
    parser.add_argument("--size", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "table": lambda: measure(folder, ".csv", write_table, options.size or 1_000_000),
            "memory": lambda: measure(folder, ".tmx", write_memory, options.size or 1000),
            "search": lambda: search(folder, options.size or 200_000),
            "kills": lambda: kill(folder, options.size or 50),
        }[options.what]()
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps(known | {options.what: found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
