"""Hostile input: mutated files, folders and options, in limited memory and time.

    python benchmarks/fuzz.py [--count 10000] [--seed 1] [--jobs 2] [--keep FOLDER]

Mutates bundles (with and without repaired hashes), vocabularies, recipes, corpora, files for
``attend``, run folders, folders to import, and options of commands. Each case is one command, in a
fork of this process: a fork needs no second to load PyTorch. It must end with a result or with one
sentence and the documented exit code. Faults are: a traceback, a sentence that calls it a bug, a
signal, no end in time, another exit code, control characters in a message, and a file that is
written outside the folder of the case. A case depends on its kind and its seed only: ``--only KIND
--seed N --count 1`` repeats one. Inputs of faults are kept. The tests run a few of each kind.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import select
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # Threads end in a fork.
os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

from fuzzing.jail import Jail, Outcome, Running, start
from fuzzing.kinds import KINDS, Case, make_case
from fuzzing.originals import make_originals

RESULTS = Path(__file__).parent / "results"

LOADED_FIRST = (
    "pellucid.training",
    "pellucid.translate.translator",
    "pellucid.formats",
    "matplotlib.figure",
    "sacrebleu",
    *(f"pellucid.cli.commands.{name}" for name in ("align", "attend", "convert", "corpus", "demo")),
    *(f"pellucid.cli.commands.{name}" for name in ("evaluate", "export", "inspect", "look")),
    *(f"pellucid.cli.commands.{name}" for name in ("score", "train", "translate")),
)


@dataclass
class Tally:
    """The outcomes of one kind.

    Attributes:
        codes: cases by exit code.
        faults: cases with a fault.
        slowest: the most seconds of processor time that a case took.
        highest: the most megabytes that a case held.
    """

    codes: Counter[int] = field(default_factory=Counter)
    faults: int = 0
    slowest: float = 0.0
    highest: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        self.codes[outcome.code] += 1
        self.faults += bool(outcome.faults)
        self.slowest = max(self.slowest, outcome.seconds)
        self.highest = max(self.highest, outcome.megabytes)


def load_libraries() -> None:
    """Load what commands load, so that no case has to."""
    for name in LOADED_FIRST:
        import_module(name)
    import torch

    from pellucid.check.line_languages import identify_language

    torch.set_num_threads(1)
    identify_language("The identifier of languages takes a second to load.")


def run_whole(arguments: list[str], folder: Path) -> None:
    """Run a command on whole input.

    Raises:
        ChildProcessError: it failed.
    """
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "here").symlink_to(folder)
        outcome = start(arguments, place, b"", Jail(extra_memory=8 << 30, cpu_seconds=300)).end()
    if outcome.code or outcome.faults:
        raise ChildProcessError(f"{arguments}: {outcome.code} {outcome.faults}\n{outcome.errors}")


class Fuzzer:
    """Runs cases, a few at a time, and keeps those with faults.

    Args:
        originals: the folder of whole inputs.
        work: a folder for cases.
        keep: the folder for inputs of faults.
        jail: the limits of each case.
        jobs: the number of cases at a time.
    """

    def __init__(self, originals: Path, work: Path, keep: Path, jail: Jail, jobs: int) -> None:
        self._originals, self._work, self._keep = originals, work, keep
        self._jail, self._jobs = jail, jobs
        self._running: dict[int, tuple[Running, Case, str, int]] = {}
        self.tallies: dict[str, Tally] = {}
        self.log: Any = None

    def run(self, kind: str, seed: int) -> None:
        """Start a case as soon as there is room."""
        if len(self._running) >= self._jobs:
            self._collect()
        folder = self._work / f"{kind.replace(' ', '-').replace(',', '')}-{seed}"
        (folder / "here").mkdir(parents=True)
        case = make_case(kind, seed, self._originals, folder / "here")
        running = start(case.arguments, folder, case.stdin, self._jail, has_report=case.has_report)
        self._running[running.descriptor] = (running, case, kind, seed)

    def finish(self) -> None:
        """Wait for all cases."""
        while self._running:
            self._collect()

    def _collect(self) -> None:
        """Wait until a case ends, and count it."""
        patience = min(one[0].seconds_left for one in self._running.values())
        ready, _, _ = select.select(list(self._running), [], [], patience)
        late = [key for key, one in self._running.items() if one[0].seconds_left == 0]
        for descriptor in ready or late:
            running, case, kind, seed = self._running.pop(descriptor)
            outcome = running.end()
            victim = running.folder / "victim"
            if victim.exists() and victim.read_text() != "precious\n":
                outcome.faults.append("a link was followed")
            self.tallies.setdefault(kind, Tally()).add(outcome)
            self._log(outcome, case, kind, seed)
            if outcome.faults:
                self._report(outcome, case, kind, seed, running.folder)
            shutil.rmtree(running.folder, ignore_errors=True)

    def _log(self, outcome: Outcome, case: Case, kind: str, seed: int) -> None:
        if self.log is not None:
            record = {"kind": kind, "seed": seed, "code": outcome.code, "errors": outcome.errors}
            record |= {"seconds": round(outcome.seconds, 2), "arguments": case.arguments}
            self.log.write(json.dumps(record) + "\n")

    def _report(self, outcome: Outcome, case: Case, kind: str, seed: int, folder: Path) -> None:
        """Say what happened, and keep the inputs."""
        place = self._keep / folder.name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder, place, symlinks=True)
        (place / "command.json").write_text(json.dumps(case.arguments))
        last = outcome.errors.rstrip().rpartition("\n")[2][:300]
        print(
            f"{kind}, seed {seed}: {'; '.join(outcome.faults)}\n  {str(case.arguments)[:300]}\n"
            f"  exit code {outcome.code}, {outcome.seconds:.1f} s: {last!r}\n  {place}",
            flush=True,
        )


def table(tallies: dict[str, Tally]) -> str:
    """Format the outcomes by kind; memory includes the libraries."""
    lines = [
        f"{'kind':26} {'cases':>6} {'results':>8} {'exit 1':>7} {'exit 2':>7} {'faults':>7} "
        f"{'slowest':>9} {'memory':>9}"
    ]
    for kind, one in tallies.items():
        lines.append(
            f"{kind:26} {one.codes.total():>6,} {one.codes[0]:>8,} {one.codes[1]:>7,} "
            f"{one.codes[2]:>7,} {one.faults:>7,} {one.slowest:>7.1f} s "
            f"{one.highest:>6.0f} MB"
        )
    return "\n".join(lines)


def main() -> None:
    """Run cases of every kind in turn, print the table, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="cases of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="the first case's; others follow")
    parser.add_argument("--only", choices=list(KINDS), help="cases of this kind only")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--keep", type=Path, help="folder for the inputs of faults")
    parser.add_argument("--log", type=Path, help="file for one line of JSON a case")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    arguments = parser.parse_args()
    load_libraries()
    kinds = [arguments.only] if arguments.only else list(KINDS)
    keep = arguments.keep or Path(tempfile.mkdtemp(prefix="fuzz-faults-"))
    keep.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        originals, work = Path(name) / "originals", Path(name) / "work"
        originals.mkdir()
        work.mkdir()
        make_originals(originals, run_whole)
        fuzzer = Fuzzer(originals, work, keep, Jail(), arguments.jobs)
        if arguments.log:
            fuzzer.log = arguments.log.open("w", buffering=1)
        for number in range(arguments.count):
            fuzzer.run(kinds[number % len(kinds)], arguments.seed + number // len(kinds))
        fuzzer.finish()
    print(table(fuzzer.tallies))
    minutes = (time.monotonic() - began) / 60
    num_faults = sum(one.faults for one in fuzzer.tallies.values())
    print(f"{arguments.count:,} cases in {minutes:.1f} minutes, {num_faults} faults.")
    if arguments.results:
        write_results(arguments, fuzzer, minutes)
    sys.exit(f"Inputs of faults are in {keep}." if num_faults else 0)


def write_results(arguments: Any, fuzzer: Fuzzer, minutes: float) -> None:
    """Write the result file."""
    from pellucid.machine.hardware import describe_machine

    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    kinds = {
        kind: {
            "cases": one.codes.total(),
            "by_exit_code": {str(code): one.codes[code] for code in sorted(one.codes)},
            "faults": one.faults,
            "slowest_seconds": round(one.slowest, 2),
            "highest_megabytes": round(one.highest),
        }
        for kind, one in fuzzer.tallies.items()
    }
    result = {
        "date": date,
        "command": f"python benchmarks/fuzz.py --count {arguments.count} --seed {arguments.seed}",
        "machine": describe_machine(),
        "minutes": round(minutes, 1),
        "kinds": kinds,
    }
    arguments.results.mkdir(exist_ok=True)
    path = arguments.results / f"{date}-fuzz-{arguments.count}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
