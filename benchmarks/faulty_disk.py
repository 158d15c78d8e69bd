"""A disk that fails at every one of its calls in turn loses nothing, and is one sentence.

    python benchmarks/faulty_disk.py [--command translate]... [--every N] [--calls FIRST-LAST]...

A command runs again and again, each time in a new folder, and a preloaded library lets the next
call fail that writes, flushes, cuts, renames, links or maps a file there, until the command
succeeds: with ENOSPC (full) and with EIO (broken). Each time the command must end with one
sentence, or do without. Then the same command on a good disk must give the bytes that it gives at
once, and leave nothing half written. ``--every N`` tries one call of N, ``--calls`` those
of a range. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.preloading import build_library

ROOT = Path(__file__).parent.parent
SHARED = str(ROOT / "tests" / "shared")
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}


@dataclass(frozen=True)
class Case:
    """A command.

    Attributes:
        words: of the command line, after ``pellucid``.
        results: the files or folders that it makes, whose bytes are compared.
        ignored: names of files whose bytes differ from run to run.
        others: commands that follow it, for its results.
    """

    words: tuple[str, ...]
    results: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()


CASES = {
    "translate": Case(("translate", "demo", "-i", "in.txt", "-o", "out.txt"), ("out.txt",)),
    "json": Case(
        ("translate", "demo", "-i", "in.txt", "-o", "out.jsonl.gz", "--json"), ("out.jsonl.gz",)
    ),
    "document": Case(("translate", "demo", "-i", "page.html", "-o", "out.html"), ("out.html",)),
    "ctranslate2": Case(("export", "demo", "--format", "ctranslate2", "-o", "model"), ("model",)),
    "int8": Case(
        ("export", "demo", "--format", "pellucid", "--precision", "int8", "-o", "model"),
        ("model",),
        ignored=("manifest.json",),  # It has a date.
    ),
    "bulk": Case(
        ("bulk", "run", "demo", "in.txt", "-o", "job", "--workers", "1", "--piece-bytes", "200"),
        ("job/manifest.json", "job/pieces", "collected.txt"),
        others=(("bulk", "collect", "job", "-o", "collected.txt"),),
    ),
    "train": Case(
        ("train", "recipe.toml", "-o", "run"),
        ("run/bundle/model.safetensors", "run/samples.jsonl"),
    ),
}


def make_inputs(folder: Path) -> None:
    """Write what the commands read."""
    from killed_runs import write_recipe  # type: ignore[import-not-found]

    lines = ["The pizza came out of the oven and it tasted good.", "The dog ate it."] * 12
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "page.html").write_text("".join(f"<p>{line}</p>\n" for line in lines[:4]))
    settings = {"max_steps": 4, "validate_every": 2, "device": "cpu"}
    write_recipe(folder, settings)


def run(words: tuple[str, ...], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """Run a command in a fork of this process; return its exit code and standard error."""
    said = folder.with_name(f"{folder.name}-said.txt")
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), said.read_text()
    try:
        os.chdir(folder)
        for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
            os.dup2(os.open(os.devnull, flags), number)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["pellucid", *words]
        os.environ.update(env)
        from pellucid.cli.main import main

        main()
    finally:
        os._exit(99)


def hash_results(case: Case, folder: Path) -> dict[str, str]:
    """Hash what a command made."""
    found = {}
    for name in case.results:
        place = folder / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.name not in case.ignored:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(folder))] = digest
    return found


def judge(code: int, said: str, *, is_whole: bool) -> str:
    """Return what is wrong with the end of a command whose disk failed; nothing if it is right."""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if code < 0:
        return f"it was ended by signal {-code}"
    if "Traceback" in said or "bug in pellucid" in said:
        return said[-600:]
    if code == 0:
        return "" if is_whole else "it ended with 0, but its result is not whole"
    return "" if len(errors) == 1 else f"code {code}, and said: {said[-300:]!r}"


def try_call(
    case: Case, number: int, error: int, base: Path, inputs: Path, expected: dict[str, str]
) -> tuple[str, str]:
    """Let one call fail; return its name, empty if there was none, and what is wrong."""
    folder, log, counter = base / "folder", base / "log.txt", base / "counter"
    for path in (folder, log):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    shutil.copytree(inputs, folder)
    counter.write_bytes(bytes(8))
    faults = {
        "FAULTS_FOLDER": f"{folder}/",
        "FAULTS_COUNTER": str(counter),
        "FAULTS_AT": str(number),
        "FAULTS_ERRNO": str(error),
        "FAULTS_LOG": str(log),
    }
    code, said = run(case.words, folder, faults)
    call = log.read_text().strip().replace(f"{folder}/", "") if log.exists() else ""
    if not call:
        return "", ""
    # What other commands make of it is looked at only below.
    made = hash_results(case, folder)
    is_whole = all(expected[name] == digest for name, digest in made.items()) and bool(made)
    complaint = judge(code, said, is_whole=is_whole)
    again, said = run(case.words, folder, {})
    if again and code == 0 and "--overwrite" in said:  # It was finished.
        again = 0
    for words in case.others:
        again = again or run(words, folder, {})[0]
    if again:
        complaint += f"; on a good disk: code {again}, {said[-400:]}"
    found = hash_results(case, folder)
    if found != expected:
        names = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
        complaint += f"; on a good disk, other bytes in {', '.join(names)}"
    left = [str(path.relative_to(folder)) for path in folder.rglob("*") if is_left_over(path)]
    if left:
        complaint += f"; left: {', '.join(left)}"
    return call, complaint.removeprefix("; ")


def is_left_over(path: Path) -> bool:
    """Tell whether a file is half written, or keeps a place that is of no more use."""
    return path.name.endswith((".part", ".state")) or path.name.startswith(".")


def try_command(
    name: str, base: Path, inputs: Path, every: int, ranges: list[str]
) -> dict[str, Any]:
    """Let every call of a command fail in turn."""
    case = CASES[name]
    folder = base / "folder"  # One place for all, since a manifest has the names of files.
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    for words in (case.words, *case.others):
        code, said = run(words, folder, {})
        assert code == 0, said
    expected = hash_results(case, folder)
    complaints, tried, began = [], 0, time.monotonic()
    for word, error in ERRORS.items():
        for number in wanted_calls(every, ranges):
            call, complaint = try_call(case, number, error, base, inputs, expected)
            if not call:
                break
            tried += 1
            if complaint:
                complaints.append(f"{word} at call {number}, {call}: {complaint}")
                print(f"  {complaints[-1]}", flush=True)
    seconds = round(time.monotonic() - began, 1)
    print(f"{name}: {tried} calls failed, {len(complaints)} wrong, {seconds:.0f} s", flush=True)
    return {"calls": tried, "wrong": complaints, "seconds": seconds}


def wanted_calls(every: int, ranges: list[str]) -> Iterable[int]:
    """Number the calls that are to fail, from 1; without ranges there is no end."""
    if not ranges:
        return itertools.count(1, every)
    bounds = [tuple(map(int, text.split("-"))) for text in ranges]
    return [number for first, last in bounds for number in range(first, last + 1, every)]


def main() -> None:
    """Try the commands, in a process that preloads the library."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--command", choices=CASES, action="append")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--calls", metavar="FIRST-LAST", action="append", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        if "LD_PRELOAD" not in os.environ:
            env = os.environ | build_library(base) | {"OMP_NUM_THREADS": "1"}
            env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), SHARED])
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=env).returncode)
        import preloaded  # type: ignore[import-not-found]  # noqa: F401

        inputs = base / "inputs"
        inputs.mkdir()
        make_inputs(inputs)
        found = {}
        for name in arguments.command or CASES:
            found[name] = try_command(name, base, inputs, arguments.every, arguments.calls)
    print(json.dumps(found, indent=1))
    sys.exit(any(one["wrong"] for one in found.values()))


if __name__ == "__main__":
    main()
