"""A million lines through the shipped model: memory over time, and three interruptions.

    python benchmarks/pipe.py [--lines 1000000] [--interruptions 3] [--seed 1] [--peer]

The built-in corpus is piped through `pellucid translate demo` three ways: as a stream from standard
input to standard output, into a file without an interruption, and into a file with SIGKILL at
random moments, after each of which the command is repeated. All three must give the same bytes.
Memory is that of the process, read from /proc while it works (Linux).

--peer adds CTranslate2 with the same model in the same run, in the fastest of its precisions,
numbers of workers and batch sizes. It gets tokens and writes tokens: turning text into them is not
counted. Its environment is that of `decode_speed.py --setup`.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from side_by_side.environments import lend_ctranslate2, python_of, require
from side_by_side.processes import run_script

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.corpora import iterate_split
from pellucid.files import hash_file
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.machine.hardware import describe_machine

RESULTS = Path(__file__).parent / "results"
COMMAND = [sys.executable, "-m", "pellucid", "translate", "demo"]
SECONDS_BETWEEN = 0.5
MAX_POINTS = 20
WAYS = ("streamed", "whole", "interrupted")
PEER_WAYS = ((1, 2, 128), (2, 1, 64), (2, 1, 128), (2, 1, 512))
TRIED_LINES = 20_000

Figures = dict[str, Any]


@dataclass
class Watch:
    """Watch the memory of one process, in MiB, until it ends."""

    process: subprocess.Popen[bytes]
    points: list[float] = field(default_factory=list)
    peak: float = 0.0

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self.process.poll() is None:
            status = read_status(self.process.pid)
            if "VmRSS" in status:
                self.points.append(status["VmRSS"] / 1024)
                self.peak = status["VmHWM"] / 1024
            time.sleep(SECONDS_BETWEEN)

    def figures(self) -> Figures:
        """Return the peak, memory over time, and its means in the second and the last fifth."""
        self._thread.join()
        fifth = max(1, len(self.points) // 5)
        early = self.points[fifth : 2 * fifth] or [0.0]
        late = self.points[-fifth:] or [0.0]
        step = 1 + len(self.points) // MAX_POINTS
        return {
            "peak_mib": round(self.peak, 1),
            "mean_mib_second_fifth": round(sum(early) / len(early), 1),
            "mean_mib_last_fifth": round(sum(late) / len(late), 1),
            "seconds_between": step * SECONDS_BETWEEN,
            "mib_over_time": [round(mib) for mib in self.points[::step]],
        }


def read_status(pid: int) -> dict[str, int]:
    """Read the sizes in a process's status, in KiB."""
    try:
        rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (row.split(":", 1) for row in rows if row.endswith(" kB"))
    return {name: int(value.split()[0]) for name, value in pairs}


def write_corpus(path: Path, count: int) -> str:
    """Write English lines, and return their hash."""
    examples = iterate_split("train")
    digest = hashlib.sha256()
    with path.open("wb") as stream:
        for _ in range(count):
            line = f"{next(examples).source}\n".encode()
            digest.update(line)
            stream.write(line)
    return digest.hexdigest()


def run(*words: str, count: int, stdin: Path | None = None, stdout: Path | None = None) -> Figures:
    """Run the command once to its end."""
    started = time.monotonic()
    with ExitStack() as stack:
        lines = stack.enter_context(stdin.open("rb")) if stdin else None
        results = stack.enter_context(stdout.open("wb")) if stdout else None
        process = subprocess.Popen([*COMMAND, *words], stdin=lines, stdout=results)
        watch = Watch(process)
        if process.wait() != 0:
            sys.exit(f"pellucid ended with {process.returncode}")
    seconds = time.monotonic() - started
    speed = {"seconds": round(seconds, 1), "lines_per_second": round(count / seconds, 1)}
    return speed | watch.figures()


def run_interrupted(
    words: list[str], output: Path, *, seconds: float, interruptions: int, seed: int
) -> list[Figures]:
    """Kill the command at random moments, spread over the time of an uninterrupted run."""
    rng = random.Random(seed)
    part, state = (output.with_name(output.name + end) for end in (".part", ".state"))
    kills = []
    for _ in range(interruptions):
        moment = rng.uniform(0.1, 0.9) * seconds / (interruptions + 1)
        before = lines_done(state)
        process = subprocess.Popen([*COMMAND, *words])
        # Count from the first finished window, so that each run makes progress.
        while lines_done(state) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moment)
        if process.poll() is not None:
            sys.exit("pellucid ended before it could be killed. Give more --lines.")
        process.kill()
        process.wait()
        kept = json.loads(state.read_text())
        kills.append(
            {
                "seconds_after_first_window": round(moment, 2),
                "lines_kept": kept["num_lines"],
                "bytes_cut_off": part.stat().st_size - kept["num_bytes"],
            }
        )
    return kills


def lines_done(state: Path) -> int:
    try:
        return int(json.loads(state.read_text())["num_lines"])
    except FileNotFoundError:
        return 0


def run_peer(source: Path, count: int, peers: Path) -> Figures:
    """Let CTranslate2 translate the same lines, the fastest way that it has."""
    require(peers, ["ctranslate2"])
    lend_ctranslate2(peers)
    bundle = load_bundle(resolve_model("demo"))
    with tempfile.TemporaryDirectory(dir=peers) as name:
        folder = Path(name)
        write_tokens(bundle, source, folder / "tokens")
        found: list[tuple[float, Figures]] = []
        for precision in ("float32", "int8"):
            export_ctranslate2(bundle, folder / precision, precision)
            for workers, threads, batch in PEER_WAYS:
                way: Figures = {"precision": precision, "workers": workers, "threads": threads}
                way |= {"batch": batch}
                tried = translate_with_peer(way, folder, peers, min(count, TRIED_LINES))
                found.append((tried["seconds"], way))
        way = min(found, key=lambda one: one[0])[1]
        done = translate_with_peer(way, folder, peers, count)
    return {**way, "lines_per_second": round(count / done["seconds"], 1), **done}


def translate_with_peer(way: Figures, folder: Path, peers: Path, lines: int) -> Figures:
    """Run CTranslate2 once."""
    files = {"source": str(folder / "tokens"), "target": str(folder / "translated")}
    work = {**way, **files, "model": str(folder / way["precision"]), "lines": lines}
    script = Path(__file__).parent / "decode_peers" / "run_lines_ctranslate2.py"
    return run_script(python_of(peers, "ctranslate2"), script, work, folder)


def write_tokens(bundle: Bundle, source: Path, path: Path) -> None:
    """Write the tokens of each line, without ``</s>``."""
    tokenizer = bundle.tokenizer
    with source.open() as lines, path.open("w") as stream:
        while some := [line.rstrip("\n") for line in islice(lines, 10_000)]:
            for ids in tokenizer.encode_sources(some):
                stream.write(" ".join(tokenizer.source_tokens(ids[:-1])) + "\n")


def main() -> None:
    """Run every way, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--interruptions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="CTranslate2 as well")
    parser.add_argument("--peers", type=Path, default=Path("build/peers"), help="its folder")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    count = arguments.lines
    with tempfile.TemporaryDirectory() as name:
        source, *outputs = (Path(name) / way for way in ("source", *WAYS))
        source_hash = write_corpus(source, count)
        streamed = run(count=count, stdin=source, stdout=outputs[0])
        whole = run("-i", str(source), "-o", str(outputs[1]), count=count)
        words = ["-i", str(source), "-o", str(outputs[2])]
        kills = run_interrupted(
            words,
            outputs[2],
            seconds=whole["seconds"],
            interruptions=arguments.interruptions,
            seed=arguments.seed,
        )
        rest = run(*words, count=count - kills[-1]["lines_kept"])
        peer = run_peer(source, count, arguments.peers) if arguments.peer else None
        hashes = {way: hash_file(path) for way, path in zip(WAYS, outputs, strict=True)}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    result = {
        "date": date,
        "command": f"python benchmarks/pipe.py --lines {count} --interruptions "
        f"{arguments.interruptions} --seed {arguments.seed}",
        "machine": describe_machine(),
        "lines": count,
        "input_sha256": source_hash,
        "output_sha256": hashes,
        "is_byte_equal": len(set(hashes.values())) == 1,
        "streamed": streamed,
        "whole": whole,
        "kills": kills,
        "rest": rest,
        "ctranslate2": peer,
    }
    arguments.results.mkdir(exist_ok=True)
    path = arguments.results / f"{date}-pipe.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())
    if not result["is_byte_equal"]:
        sys.exit("the outputs differ")


if __name__ == "__main__":
    main()
