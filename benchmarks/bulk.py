"""Bulk jobs that are killed again and again give the bytes of one translation.

    python benchmarks/bulk.py [--lines 1000000] [--kills 200] [--commands 20] [--part NAME]...

The same lines, some of them poisoned (not UTF-8, or too long for the model), are translated by
``pellucid translate`` and then by ``pellucid bulk``:

- ``calm``: one worker; its processor time is compared with that of ``translate``;
- ``local``: two workers; workers and whole commands get SIGKILL at random moments;
- ``ray``: actors of a cluster with two raylets on this machine, killed in the same way (needs Ray);
- ``s3``: two commands at once on a stand-in for S3 (needs s3fs and moto) that takes every claim, so
  that pieces are translated twice.

Every result must be byte-equal, with as many lines, and must list exactly the poisoned lines.
``--part`` runs some of them and adds to the file of the day.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pellucid import __version__
from pellucid.corpora import iterate_split
from pellucid.native.loading import describe_processor

RESULTS = Path(__file__).parent / "results"
PARTS = ("calm", "local", "ray", "s3")
COMMAND = (sys.executable, "-m", "pellucid")
QUIET = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
print("address", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""

CANNOT_REFUSE = """
import sys
from pellucid.bulk.shared_folder import Store
names = Store.names
Store.create = lambda self, name, data: self.write(name, data) or True
Store.names = lambda self, folder: set() if folder == "claims" else names(self, folder)
from pellucid.cli.main import main
main()
"""


def write_input(path: Path, *, lines: int, poisoned: int) -> list[int]:
    """Write lines of the built-in corpus; return the numbers, from 1, of the poisoned ones."""
    chance = random.Random(1)
    pool = [example.source for example in islice(iterate_split("train"), 20_000)]
    bad = sorted(chance.sample(range(lines), poisoned))
    rows = [chance.choice(pool).encode() for _ in range(lines)]
    for number, row in enumerate(bad):
        rows[row] = b"The \xff oven" if number % 2 else b"oven" + b" oven" * 3000
    path.write_bytes(b"\n".join(rows) + b"\n")
    return [row + 1 for row in bad]


def run(*arguments: str) -> float:
    """Run a command; return the processor seconds of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*COMMAND, *arguments], env=os.environ | QUIET, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode in (0, 3), done.stderr.decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def find_children(pid: int) -> list[int]:
    """List the workers of a local command."""
    with contextlib.suppress(OSError):
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def find_actors(_: int) -> list[int]:
    """List the actors on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(b"ray::Actor"):
                found.append(int(path.parent.name))
    return found


def kill_and_resume(
    command: list[str], job: Path, *, kills: int, commands: int, find: Callable[[int], list[int]]
) -> dict[str, Any]:
    """Give a command until it ends by itself, killing its workers and itself in between.

    Kills are spread over the job by its finished pieces, so that none is left at its end.
    """
    chance, begun = random.Random(2), time.monotonic()
    num_workers = num_commands = 0
    total = None
    while True:
        process = subprocess.Popen(command, env=os.environ | QUIET, stderr=subprocess.PIPE)
        while process.poll() is None:
            time.sleep(0.02 + 0.05 * chance.random())
            if total is None and (job / "manifest.json").exists():
                shards = json.loads((job / "manifest.json").read_text())["shards"]
                total = sum(len(shard["pieces"]) for shard in shards)
            pieces = job / "pieces"
            done = len(list(pieces.iterdir())) if pieces.exists() else 0
            if total is None or process.poll() is not None:
                continue
            workers = find(process.pid)
            if workers and num_workers < kills * (done + 1) / total:
                with contextlib.suppress(OSError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    num_workers += 1
            elif workers and num_commands < commands * (done + 0.5) / total:
                process.kill()
                num_commands += 1
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        if process.wait() != -signal.SIGKILL:
            assert process.returncode == 0, errors
            seconds = round(time.monotonic() - begun, 1)
            return {"workers": num_workers, "commands": num_commands, "seconds": seconds}


def compare(job: str, folder: Path, expected: bytes, bad: list[int]) -> dict[str, Any]:
    """Collect a job, and compare it with the translation of one command."""
    out = folder / "collected"
    run("bulk", "collect", job, "-o", str(out), "--overwrite")
    found = out.read_bytes()
    if job.startswith("s3://"):
        import fsspec

        listed = fsspec.open(f"{job}/failed.tsv").open().read().decode()
    else:
        listed = Path(job, "failed.tsv").read_text()
    numbers = [int(row.partition("\t")[0].rpartition(":")[2]) for row in listed.splitlines()]
    return {
        "byte_equal": found == expected,
        "lines_lost_or_doubled": found.count(b"\n") - expected.count(b"\n"),
        "poisoned_lines_listed": len(numbers),
        "lists_exactly_the_poisoned_lines": numbers == bad,
    }


@contextlib.contextmanager
def ray_cluster() -> Iterator[str]:
    """Start a cluster with two raylets, and give its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=os.environ | QUIET,
    )  # fmt: skip
    assert process.stdout is not None
    address = next(line.split()[1] for line in process.stdout if line.startswith("address"))
    yield address
    process.communicate("")


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Start a stand-in for S3, and give an address in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    import fsspec

    for _ in range(100):
        with contextlib.suppress(Exception):
            fsspec.filesystem("s3").mkdir("bucket")
            break
        time.sleep(0.2)
    try:
        yield "s3://bucket"
    finally:
        server.kill()


def run_part(
    part: str, arguments: argparse.Namespace, folder: Path, expected: bytes, bad: list[int]
) -> dict[str, Any]:
    """Run one kind of job."""
    source, job = folder / "in.txt", folder / part
    shutil.rmtree(job, ignore_errors=True)
    # As many pieces as kills, so that these hit all of the job.
    options = ["--piece-bytes", str(source.stat().st_size // max(20, arguments.kills))]
    common = ["bulk", "run", "demo", str(source), "-o", str(job), *options]
    kills = {"kills": arguments.kills, "commands": arguments.commands}
    if part == "calm":
        seconds = run(*common, "--workers", "1")
        return {"processor_seconds": round(seconds, 2), **compare(str(job), folder, expected, bad)}
    if part == "local":
        command = [*COMMAND, *common, "--workers", "2"]
        found = kill_and_resume(command, job, find=find_children, **kills)
        return {"killed": found, **compare(str(job), folder, expected, bad)}
    if part == "ray":
        with ray_cluster() as address:
            command = [*COMMAND, *common, "--ray", address]
            found = kill_and_resume(command, job, find=find_actors, **kills)
        return {"killed": found, **compare(str(job), folder, expected, bad)}
    with s3_server() as address:
        place = f"{address}/job"
        program = [sys.executable, "-c", CANNOT_REFUSE]
        command = [*program, "bulk", "run", "demo", str(source), "-o", place, *options]
        both = [
            subprocess.Popen([*command, "--workers", "1"], env=os.environ | QUIET) for _ in range(2)
        ]
        codes = [process.wait() for process in both]
        assert set(codes) == {0}, codes
        return {"commands": 2, **compare(place, folder, expected, bad)}


def main() -> None:
    """Run the parts and add what they found to the file of the day."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--poisoned", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--commands", type=int, default=20)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--folder", type=Path, help="keeps the input and its translation")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bad = write_input(folder / "in.txt", lines=arguments.lines, poisoned=arguments.poisoned)
        target = folder / "translated"
        if not target.exists():
            source = str(folder / "in.txt")
            seconds = run("translate", "demo", "-i", source, "-o", str(target), "--threads", "1")
            (folder / "seconds").write_text(f"{seconds:.2f}")
        path = RESULTS / f"{datetime.date.today()}-bulk.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        seconds = float((folder / "seconds").read_text())
        found |= {"model": "demo", "version": __version__, "processor": describe_processor()}
        for part in arguments.part or PARTS:
            found[part] = {
                "lines": arguments.lines, "poisoned": arguments.poisoned,
                "translate_processor_seconds": seconds,
                **run_part(part, arguments, folder, target.read_bytes(), bad),
            }  # fmt: skip
            path.write_text(json.dumps(found, indent=1) + "\n")
            print(part, json.dumps(found[part]), flush=True)


if __name__ == "__main__":
    main()
