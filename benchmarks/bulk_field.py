"""A job under all that was reported from the field, at once, gives the bytes of one translation.

    python benchmarks/bulk_field.py [--lines 1000000] [--kills 200] [--commands 20] [--stops 3]

Two commands work on a job in a folder without hard links; the clock of the second one is ten
minutes ahead. At random moments, spread over the job, workers and commands get SIGKILL and are
started again, and workers get SIGSTOP. Some lines are bad. No line may be lost or doubled, exactly
the bad lines may be listed, and both commands must end with 0. ``--ray`` does the same with actors
of a cluster with two raylets on this machine. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bulk import COMMAND, QUIET, RESULTS, compare, find_actors, find_children, ray_cluster, run
from bulk import write_input as write_lines
from faults.preloading import build_library

from pellucid import __version__
from pellucid.native.loading import describe_processor

BEGIN = ("bulk", "run", "demo")
CLOCKS = (0, 600)
"""Seconds that the clocks of the two commands are ahead."""


class Field:
    """Two commands that work on one job, and what happens to them.

    Args:
        command: the command.
        job: its folder.
        env: the variables of both.
        wanted: how many of each event there are to be.
        has_actors: True if workers are actors of Ray.
    """

    def __init__(
        self,
        command: list[str],
        job: Path,
        env: dict[str, str],
        wanted: dict[str, int],
        *,
        has_actors: bool,
    ) -> None:
        self._command = command
        self._job = job
        self._env = env
        self._wanted = wanted
        self._find = find_actors if has_actors else find_children
        self._chance = random.Random(2)
        self.counts = dict.fromkeys(wanted, 0)
        self._said = job.with_name("said.txt")
        self._processes = [self._start(clock) for clock in CLOCKS]

    def run(self) -> dict[str, int]:
        """Let it happen until both commands have ended by themselves; return the counts."""
        while not all(process.poll() == 0 for process in self._processes):
            time.sleep(0.02 + 0.05 * self._chance.random())
            for number, process in enumerate(self._processes):
                if process.poll() == -signal.SIGKILL:
                    self._processes[number] = self._start(CLOCKS[number])
                assert process.poll() in (None, 0, -signal.SIGKILL), self._said.read_text()
            self._let_happen()
        return self.counts

    def _start(self, clock: int) -> subprocess.Popen[bytes]:
        env = os.environ | QUIET | self._env
        env |= {"FAULTS_NO_LINKS": "1", "FAULTS_CLOCK": str(clock)}
        with self._said.open("ab") as said:
            return subprocess.Popen(self._command, env=env, stderr=said)

    def _share_done(self) -> float:
        """Return the share of pieces that are finished; 0 before the job has begun."""
        with contextlib.suppress(OSError, ValueError):
            shards = json.loads((self._job / "manifest.json").read_text())["shards"]
            total = sum(len(shard["pieces"]) for shard in shards)
            done = len(list((self._job / "pieces").iterdir()))
            return min(1.0, (done + 0.5) / total)
        return 0.0

    def _let_happen(self) -> None:
        share = self._share_done()
        due = [kind for kind in self._wanted if self.counts[kind] < self._wanted[kind] * share]
        running = [process for process in self._processes if process.poll() is None]
        if not due or not running:
            return
        kind = self._chance.choice(due)
        process = self._chance.choice(running)
        if kind == "commands":
            process.kill()
        else:
            workers = self._find(process.pid)
            if not workers:
                return
            sent = signal.SIGSTOP if kind == "stops" else signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._chance.choice(workers), sent)
        self.counts[kind] += 1


def run_field(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the job, and compare it with the translation of one command."""
    source = folder / "in.txt"
    target = folder / "translated"
    job = folder / "job"
    bad = write_lines(source, lines=arguments.lines, poisoned=arguments.poisoned)
    run("translate", "demo", "-i", str(source), "-o", str(target), "--threads", "1")
    # As many pieces as events, so that these hit all of the job.
    piece_bytes = source.stat().st_size // max(20, arguments.kills)
    command = [*COMMAND, *BEGIN, str(source), "-o", str(job)]
    command += ["--piece-bytes", str(piece_bytes), "--workers", "2"]
    wanted = {"kills": arguments.kills, "commands": arguments.commands, "stops": arguments.stops}
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        if arguments.ray:
            command += ["--ray", stack.enter_context(ray_cluster())]
        env = build_library(folder)
        counts = Field(command, job, env, wanted, has_actors=arguments.ray).run()
    seconds = round(time.monotonic() - began, 1)
    left = [path.name for name in ("claims", "workers") for path in (job / name).iterdir()]
    hidden = [path.name for path in job.rglob(".*")]
    return {
        "lines": arguments.lines,
        "bad_lines": arguments.poisoned,
        **counts,
        "seconds": seconds,
        "claims_and_beats_left": len(left),
        "half_written_files_left": len(hidden),
        **compare(str(job), folder, target.read_bytes(), bad),
    }


def main() -> None:
    """Run it, and write down what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--poisoned", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--commands", type=int, default=20)
    parser.add_argument("--stops", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = run_field(arguments, Path(temporary))
    path = RESULTS / f"{datetime.date.today()}-bulk-field.json"
    parts = json.loads(path.read_text()) if path.exists() else {}
    parts |= {"model": "demo", "version": __version__, "processor": describe_processor()}
    parts["ray" if arguments.ray else "local"] = found
    path.write_text(json.dumps(parts, indent=1) + "\n")
    print(json.dumps(found), flush=True)
    assert found["byte_equal"]
    assert found["lists_exactly_the_poisoned_lines"]


if __name__ == "__main__":
    main()
