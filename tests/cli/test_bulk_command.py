"""``pellucid bulk``: jobs in real processes, killed workers and commands, and bad input."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pellucid.bulk.board import Beat, Board
from pellucid.bulk.driver import WorkerWindow
from pellucid.bulk.local import LocalWorker
from pellucid.config import DataConfig
from pellucid.text.reading.sentence_pairs import read_pairs

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]

WORDS = [
    "The",
    "pizza",
    "came",
    "out",
    "of",
    "the",
    "oven",
    ".",
    "La",
    "est",
    "sortie",
    "du",
    "four",
]


def make_lines(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(count)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def translate(run: Run, model: Path, text: bytes, *options: str) -> str:
    done = run("translate", str(model), *options, stdin=text)
    return done.stdout


@pytest.fixture
def run_bulk(run_here: Run, forked_children: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process, and its workers as forks."""
    monkeypatch.setattr("pellucid.cli.bulk.bulk_jobs.LINES_A_WORKER", 10)
    return run_here


def test_shards_of_every_form_are_collected_in_order_as_one_translation(
    run_bulk: Run, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = make_lines(150)
    long = "The pizza came out of the oven . " * 12  # longer than a piece
    first = "".join(f"{line}\r\n" for line in lines[:60])
    middle = "\n".join([*lines[60:80], "", f"  {lines[80]} ", long, *lines[81:100]])
    last = "\n".join(lines[100:])
    Path("part.10").write_bytes(first.encode())
    Path("part.9").write_bytes(b"\xef\xbb\xbf" + middle.encode())  # a byte-order mark, no last end
    Path("empty").write_bytes(b"")
    packed = last.encode()
    Path("part.gz").write_bytes(gzip.compress(packed[:700]) + gzip.compress(packed[700:]))
    Path("empty.gz").write_bytes(gzip.compress(b""))
    Path("job").mkdir()
    Path("job/.manifest.json.0").touch()  # of a command that begins the same job just now
    shards = ["part.10", "part.9", "empty", "part.gz", "empty.gz"]
    done = run_bulk(
        *("bulk", "run", str(bundle_folder), *shards, "-o", "job", "--piece-bytes", "300"),
        *("--workers", "2", "--beam", "2"),
    )
    assert done.returncode == 0, done.stderr
    assert run_bulk("bulk", "collect", "job", "-o", "all.txt").returncode == 0
    text = f"{first}{middle}\n{last}\n".encode()
    expected = translate(run_bulk, bundle_folder, text, "--beam", "2")
    assert Path("all.txt").read_text() == expected
    assert len(names(Path("job/pieces"))) > 10
    assert not names(Path("job/claims"))
    assert not names(Path("job/workers"))
    # The same command has nothing left to do, and sends no line to a worker.
    monkeypatch.setattr("pellucid.bulk.local.LocalWorker.send_window", None)
    again = run_bulk(
        *("bulk", "run", str(bundle_folder), *shards, "-o", "job", "--beam", "2"),
    )
    assert (again.returncode, again.stderr) == (0, "")
    status = run_bulk("bulk", "status", "job")
    pieces = len(names(Path("job/pieces")))
    assert status.stdout == f"{pieces} of {pieces} pieces, 152 of 152 lines\n"


def without_notes(text: str) -> str:
    objects = map(json.loads, text.splitlines())
    return "\n".join(json.dumps({**one, "notes": None}) for one in objects)


@pytest.mark.parametrize("option", [(), ("--n-best", "2"), ("--json",)])
def test_lines_that_fail_are_empty_and_listed_and_only_the_end_of_the_job_says_so(
    run_bulk: Run, bundle_folder: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    lines = [line.encode() for line in make_lines(40)]
    lines[7], lines[29], lines[33] = b"The \xff oven", b"The oven " * 30, b"PK\x03\x04 The"
    text = b"".join(line + b"\n" for line in lines)
    (tmp_path / "in.txt").write_bytes(text)
    search = ("--beam", "2", "--split", "none", *option)
    done = run_bulk(
        *("bulk", "run", str(bundle_folder), str(tmp_path / "in.txt")),
        *("-o", str(tmp_path / "job")),
        *("--piece-bytes", "100", *search),
    )
    # A scheduler must not run a finished job again.
    assert done.returncode == 0
    assert "warning: 2 lines could not be used and left empty: " in done.stderr
    collected = run_bulk("bulk", "collect", str(tmp_path / "job"), "-o", str(tmp_path / "out"))
    assert collected.returncode == 3
    assert run_bulk("bulk", "join", str(tmp_path / "job")).returncode == 0
    assert run_bulk("bulk", "status", str(tmp_path / "job")).returncode == 3
    expected = translate(run_bulk, bundle_folder, text, *search)
    found = (tmp_path / "out").read_text()
    if option == ("--json",):  # Notes look at the least certain of the lines of a window.
        found, expected = map(without_notes, (found, expected))
    assert found == expected
    listed = (tmp_path / "job" / "failed.tsv").read_text().splitlines()
    assert [row.split("\t")[0] for row in listed] == [
        f"{tmp_path}/in.txt:8",
        f"{tmp_path}/in.txt:30",
    ]
    assert "0xff" in listed[0]
    assert "tokens" in listed[1]


def test_killed_workers_and_commands_lose_and_double_nothing(
    start: Start, run_here: Run, tmp_path: Path
) -> None:
    lines = make_lines(2500)
    text = "".join(f"{line}\n" for line in lines)
    (tmp_path / "in.txt").write_text(text)
    command = [
        *(sys.executable, "-m", "pellucid", "bulk", "run", "demo", str(tmp_path / "in.txt")),
        *("-o", str(tmp_path / "job"), "--piece-bytes", "6000", "--workers", "2"),
    ]
    chance, kills = random.Random(3), {"worker": 0, "command": 0}
    pieces, seen = tmp_path / "job" / "pieces", 0
    while True:
        process = start(command, stderr=subprocess.PIPE)
        while process.poll() is None:
            time.sleep(0.02)
            done = len(names(pieces)) if pieces.exists() else 0
            children = children_of(process.pid)
            if done < seen + 2 or not children:
                continue
            seen = done
            if kills["worker"] < 3 and kills["worker"] <= 2 * kills["command"]:
                os.kill(chance.choice(children), signal.SIGKILL)
                kills["worker"] += 1
            elif kills["command"] < 2:
                number = (signal.SIGKILL, signal.SIGTERM)[kills["command"]]
                process.send_signal(number)
                kills["command"] += 1
                assert process.wait(30) == (143 if number == signal.SIGTERM else -number)
        if process.returncode not in (143, -signal.SIGKILL):
            break
    assert process.stderr is not None
    assert process.returncode == 0, process.stderr.read()
    assert all(kills.values()), kills
    collected = run_here("bulk", "collect", str(tmp_path / "job"), "-o", str(tmp_path / "out"))
    assert collected.returncode == 0, collected.stderr
    expected = translate(run_here, Path("demo"), text.encode())
    assert (tmp_path / "out").read_text() == expected


@pytest.mark.parametrize("when", ["loading", "translating"])
def test_a_stopped_worker_is_replaced_and_loses_and_doubles_nothing(
    run_bulk: Run, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    text = "".join(f"{line}\n" for line in make_lines(60))
    (tmp_path / "in.txt").write_text(text)
    monkeypatch.setattr("pellucid.bulk.local.SECONDS_TO_MOVE", 2.0)
    stopped: list[int] = []
    begin, send = LocalWorker.__init__, LocalWorker.send_window

    def stop(worker: LocalWorker) -> None:
        if not stopped:
            stopped.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGSTOP)

    def begin_stopped(worker: LocalWorker, *arguments: Any, **options: Any) -> None:
        begin(worker, *arguments, **options)
        if when == "loading":
            stop(worker)

    def send_stopped(worker: LocalWorker, window: WorkerWindow) -> None:
        if when == "translating" and window.piece.number == 3:
            stop(worker)
        send(worker, window)

    monkeypatch.setattr(LocalWorker, "__init__", begin_stopped)
    monkeypatch.setattr(LocalWorker, "send_window", send_stopped)
    done = run_bulk(
        *("bulk", "run", str(bundle_folder), str(tmp_path / "in.txt")),
        *("-o", str(tmp_path / "job"), "--piece-bytes", "200", "--workers", "1"),
    )
    assert done.returncode == 0, done.stderr
    collected = run_bulk("bulk", "collect", str(tmp_path / "job"), "-o", str(tmp_path / "out"))
    assert collected.returncode == 0
    assert stopped
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)
    assert (tmp_path / "out").read_text() == translate(run_bulk, bundle_folder, text.encode())


def children_of(pid: int) -> list[int]:
    """List the processes that a process started."""
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def test_worker_that_translates_in_c_leaves_pytorch_unimported(run_python: Run) -> None:
    code = """
import sys
from pellucid.cli.bulk.work import Work
from pellucid.config import TreatmentConfig
task = dict(
    files={"model": ["demo"], "forbid": [], "glossary": []}, kind="lines", score=False, given={},
    form="plain", to=None, constraints=dict(prefix=None, forbid=[], require=None, set=[]),
    column=None, into=None,
    treatment=TreatmentConfig().model_dump(),
)
work = Work(task, 1)
work.introduce()
print(work.answer([0, "a file", 1, [], ""], b"I eat the bread.\\n"), "torch" in sys.modules)
"""
    done = run_python("-c", code)
    assert done.stdout == '["Je mange le pain.\\n", []] False\n'.replace('"', "'"), done.stderr


@pytest.fixture
def job(run_bulk: Run, bundle_folder: Path, tmp_path: Path) -> tuple[str, ...]:
    """A command whose job is half finished: its first piece is missing."""
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in make_lines(12)))
    command = (
        *("bulk", "run", str(bundle_folder), str(tmp_path / "in.txt")),
        *("-o", str(tmp_path / "job")),
        *("--piece-bytes", "100", "--workers", "1"),
    )
    done = run_bulk(*command)
    assert done.returncode == 0, done.stderr
    (tmp_path / "job" / "pieces" / "000000").unlink()
    return command


def assert_refused(done: subprocess.CompletedProcess[str], *words: str, code: int = 2) -> None:
    """Expect one sentence of a command, and an exit code."""
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "bug in pellucid" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_another_option_or_model_is_refused_in_the_folder_of_a_job(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    assert_refused(run_bulk(*job, "--beam", "3"), "--beam (1 then, 3 now)", "choose another folder")
    other = run_bulk(*job[:2], "demo", *job[3:])
    assert_refused(other, "MODEL")
    assert not (tmp_path / "job" / "pieces" / "000000").exists()
    assert run_bulk(*job).returncode == 0
    # A finished job too must not be taken for another one.
    assert_refused(run_bulk(*job, "--beam", "3"), "--beam (1 then, 3 now)")


def test_another_shard_is_refused_in_the_folder_of_a_job(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "other.txt").write_text("The oven\n")
    other = run_bulk(*job, str(tmp_path / "other.txt"))
    assert_refused(other, "must hold one job", "other inputs")


def test_a_shard_that_changed_or_was_cut_short_is_named(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "in.txt"
    text = path.read_text()
    path.write_text(text[:-20])
    assert_refused(
        run_bulk(*job), f"{path} had {len(text)} bytes then and has {len(text) - 20} now"
    )
    path.write_text(text.replace("a", "e"))
    assert_refused(run_bulk(*job), f"{path} differs from line 1 on")
    path.write_text(text)
    assert run_bulk("bulk", "join", str(tmp_path / "job")).returncode == 0


def test_another_instruction_set_needs_any_machine(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "job" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["identity"]["the processor"] = "avx1024"
    path.write_text(json.dumps(manifest))
    join = ("bulk", "join", str(tmp_path / "job"), "--workers", "1")
    assert_refused(run_bulk(*join), "the processor (", "--any-machine")
    assert run_bulk(*join, "--any-machine").returncode == 0


def test_a_full_disk_ends_in_a_sentence_and_loses_nothing(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(tmp_path / "job" / "pieces")
    with monkeypatch.context() as patch:
        plain = os.replace

        def fail(part: Path, path: Path) -> None:
            if Path(path).parent.name == "pieces":
                raise OSError(28, "No space left on device")
            plain(part, path)

        patch.setattr(os, "replace", fail)
        assert_refused(run_bulk(*job), "No space left on device", "Free some space", code=1)
    assert names(tmp_path / "job" / "pieces") == before
    assert not names(tmp_path / "job" / "claims")
    assert run_bulk(*job).returncode == 0


def test_a_job_is_collected_only_if_all_its_pieces_are_whole(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    collect = ("bulk", "collect", str(tmp_path / "job"), "-o", str(tmp_path / "out"))
    assert_refused(run_bulk(*collect), "but 1 of ", "pellucid bulk join")
    assert run_bulk(*job).returncode == 0
    piece = tmp_path / "job" / "pieces" / "000001"
    piece.write_text(piece.read_text().partition("\n")[2])
    assert_refused(run_bulk(*collect), "a result for each of its lines", "pieces/000001")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "demo", "-o", "job"), 2, "SHARD is missing"),
        (("run", "demo", "in.txt"), 2, "--output is missing"),
        (("run", "demo", "-i", "in.txt"), 2, "Give the names of the files as words instead"),
        (("run", "demo", "-", "-o", "job"), 2, "A shard must be a file, which workers read in"),
        (("run", "--join", "nowhere"), 2, "Give pellucid bulk join FOLDER instead"),
        (("join", "nowhere"), 2, "has no manifest.json"),
        (("status", "in.txt", "--json"), 2, "in.txt must be the folder of a job, but has no"),
        (("run", "demo", "in.txt", "-o", "two.tsv"), 2, "two.tsv must be the folder of a job"),
        (("run", "demo", "in.txt", "-o", "job", "--minutes", "0"), 2, "at least 0.01, but is '0'"),
        (("join", "job", "--time-limit", "9"), 2, "--minutes N"),
        (("collect", "nowhere", "--back-translation", "BT"), 2, "has no manifest.json"),
        (("run", "demo", "no.txt", "-o", "job"), 2, "no.txt does not exist. Check the name"),
        (("run", "demo", "in.txt", "two.tsv", "-o", "job"), 2, "lines, tsv"),
        (("run", "demo", "page.html", "-o", "job"), 2, "page.html is a page with markup"),
        (("run", "demo", "in.txt", "-o", "."), 2, "has no manifest.json"),
        (("run", "demo", "in.txt", "-o", "job", "--score"), 2, "--score needs pairs"),
        (
            ("run", "demo", "two.tsv", "-o", "job", "--score", "--beam", "2"),
            2,
            "--score cannot be combined with --beam",
        ),
        (("run", "demo", "in.txt", "-o", "job", "--beam", "0"), 2, "beam"),
        (("run", "nothing", "in.txt", "-o", "job"), 2, "nothing does not exist"),
        (("run", "demo", "bad.gz", "-o", "job"), 2, "bad.gz is damaged"),
        (("run", "demo", "bad.jsonl", "-o", "job"), 2, "bad.jsonl:1"),
        (("run", "demo", "two.tsv", "-o", "job", "--column", "en"), 2, "must have the column 'en'"),
        (("run", "demo", "two.tsv", "-o", "job", "--into", "2"), 2, "--into needs --score"),
        (
            ("run", "demo", "two.tsv", "-o", "job", "--score", "--column", "2"),
            2,
            "must be two columns",
        ),
        (("run", "demo", "in.txt", "-o", "nosuch://bucket/job"), 2, "nosuch"),
        (("run", "demo", "gs://bucket/in.txt", "-o", "job"), 2, "gcsfs"),
        (("run", "demo", "in.txt", "-o", "job", "--ray", "auto"), 2, "pellucid[ray]"),
    ],
)
def test_bad_input_is_one_sentence_and_begins_nothing(
    run_bulk: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    Path("in.txt").write_text("The oven\n")
    Path("page.html").write_text("<p>The oven</p>\n")
    Path("two.tsv").write_text("The oven\tLe four\n")
    Path("bad.jsonl").write_text('{"other": "The oven"}\n')
    Path("bad.gz").write_bytes(gzip.compress(b"The oven\n" * 999)[:-9])
    assert_refused(run_bulk("bulk", *arguments), words, code=code)
    assert not Path("job").exists()


PAIRS = [
    ("The pizza came", "La pizza est"),
    ("out of the oven", "sortie du four"),
    ("oven", "four"),
]


def write_pairs(folder: Path) -> dict[str, Path]:
    """Write the same texts in every form."""
    table = folder / "pairs.tsv"
    table.write_text("id\tsource\ttarget\n" + "".join(f"7\t{s}\t{t}\n" for s, t in PAIRS))
    objects = folder / "pairs.jsonl"
    objects.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in PAIRS))
    return {"tsv": table, "jsonl": objects}


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_pairs_are_translated_collected_and_read_by_training(
    run_bulk: Run, bundle_folder: Path, tmp_path: Path, kind: str
) -> None:
    shard = write_pairs(tmp_path)[kind]
    sources = "".join(f"{source}\n" for source, _ in PAIRS)
    expected = translate(run_bulk, bundle_folder, sources.encode()).splitlines()
    column = ("--column", "source")
    job = ("bulk", "run", str(bundle_folder), str(shard), "-o", str(tmp_path / "job"))
    done = run_bulk(*job, *column, "--piece-bytes", "20")
    assert done.returncode == 0, done.stderr
    collect = ("bulk", "collect", str(tmp_path / "job"), "-o")
    assert run_bulk(*collect, str(tmp_path / "out.tsv")).returncode == 0
    back = (str(tmp_path / "back.jsonl"), "--back-translation", "<BT>")
    assert run_bulk(*collect, *back).returncode == 0
    kept = [(s, t) for (s, _), t in zip(PAIRS, expected, strict=True) if t.strip()]
    assert kept  # An untrained model may translate into nothing.
    for name, pairs in (("out.tsv", kept), ("back.jsonl", [(f"<BT> {t}", s) for s, t in kept])):
        data = DataConfig(train=(name,), validation=(name,))
        assert [(p.source, p.target) for p in read_pairs(data, "train", tmp_path)] == pairs


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_scores_are_those_of_the_command_score(
    run_bulk: Run, bundle_folder: Path, tmp_path: Path, kind: str
) -> None:
    shard = write_pairs(tmp_path)[kind]
    for name, side in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    files = ("--source", str(tmp_path / "source"), "--target", str(tmp_path / "target"))
    expected = run_bulk("score", str(bundle_folder), *files).stdout
    job = ("bulk", "run", str(bundle_folder), str(shard), "--score", "-o", str(tmp_path / "job"))
    done = run_bulk(*job, "--piece-bytes", "20")
    assert done.returncode == 0, done.stderr
    collect = ("bulk", "collect", str(tmp_path / "job"), "-o")
    assert run_bulk(*collect, str(tmp_path / "out")).returncode == 0
    assert run_bulk(*collect, "-").stdout == expected
    assert (tmp_path / "out").read_text() == expected
    assert run_bulk(*collect, str(tmp_path / "out.tsv")).returncode == 0
    rows = [row.split("\t") for row in (tmp_path / "out.tsv").read_text().splitlines()]
    assert [(row[0], row[1]) for row in rows] == PAIRS
    assert [row[2] for row in rows] == expected.split()
    assert run_bulk(*collect, str(tmp_path / "out.jsonl")).returncode == 0
    objects = list(map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()))
    assert [one["log_probability"] for one in objects] == list(map(float, expected.split()))


def test_status_names_who_works_where(run_bulk: Run, job: tuple[str, ...], tmp_path: Path) -> None:
    beats = tmp_path / "job" / "workers"
    beats.mkdir(exist_ok=True)
    beat = Beat("far-away", 7, 3, [0, 4], 5000, 2, 100.0, 1, time.time())
    (beats / "far-away-7-a").write_text(json.dumps(vars(beat)))
    silent = Beat("long-gone", 8, 3, [1], 5000, 2, 100.0, 4, time.time() - 1000)
    (beats / "long-gone-8-b").write_text(json.dumps(vars(silent)))
    done = run_bulk("bulk", "status", str(tmp_path / "job"))
    assert "50 lines/s" in done.stdout
    assert done.stdout.endswith("1 retry; far-away (3 workers, pieces 0 4)\n")


def test_status_as_json_has_the_retries_of_each_piece_and_every_line_that_failed(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    piece = json.loads((folder / "manifest.json").read_text())["shards"][0]["pieces"][0]
    for name, text in {"failed/000001": '[[1, "It is bad."]]', "retries/000002": "3"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    beat = Beat("far-away", 7, 3, [0], 5000, 1, 100.0, 1, time.time())
    (folder / "workers").mkdir(exist_ok=True)
    (folder / "workers" / "far-away-7-a").write_text(json.dumps(vars(beat)))
    done = run_bulk("bulk", "status", str(folder), "--json")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    pieces = len(names(folder / "pieces"))
    assert (found["pieces"], found["finished_pieces"]) == (pieces + 1, pieces)
    assert (found["lines"], found["finished_lines"]) == (12, 12 - piece[1] + 1)
    assert found["lines_per_second"] == 50.0
    assert found["seconds_left"] == (piece[1] - 1) / 50.0
    assert found["retries"] == {"000002": 3}
    (failed,) = found["failed"]
    line = piece[1] + 1
    assert failed == {
        "line": line,
        "file": f"{tmp_path}/in.txt",
        "line_of_file": line + 1,
        "error": "It is bad.",
    }
    (command,) = found["commands"]
    expected = ("host", "pid", "workers", "pieces", "lines", "seconds", "retries")
    assert command == {name: vars(beat)[name] for name in expected}


def test_a_job_whose_time_is_over_ends_with_75_and_is_finished_later(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = ("bulk", "join", str(tmp_path / "job"), "--workers", "1", "--minutes", "100")
    with monkeypatch.context() as patch:
        patch.setattr("pellucid.cli.commands.bulk._end_of", lambda minutes: minutes - 100)
        late = run_bulk(*join)
        assert late.returncode == run_bulk(*job, "--minutes", "100").returncode == 75
    assert late.stderr.startswith("warning: The time was too short for any piece. Give more")
    assert "note: Not finished in time: " in late.stderr
    # The same command would end so again.
    assert "Give the same command" not in late.stderr
    assert late.stderr.endswith("Give the command with more minutes to continue.\n")
    assert not (tmp_path / "job" / "pieces" / "000000").exists()
    assert not names(tmp_path / "job" / "claims")
    assert run_bulk("bulk", "status", str(tmp_path / "job")).returncode == 0
    assert run_bulk(*join).returncode == 0
    # Finished work is finished, however late it is.
    monkeypatch.setattr("pellucid.cli.commands.bulk._end_of", lambda minutes: minutes - 100)
    assert run_bulk(*join).returncode == 0


@pytest.fixture
def large(
    run_bulk: Run, job: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """A command whose files are large, in a folder where another command plans just now."""
    monkeypatch.setattr("pellucid.bulk.planning.BYTES_A_PROCESS", 1)
    monkeypatch.setattr("pellucid.cli.bulk.bulk_jobs._SECONDS_BETWEEN_LOOKS", 0.01)
    folder = tmp_path / "large"
    for name, data in {
        "claims/plan": "elsewhere-1",
        "workers/elsewhere-1": json.dumps(vars(Beat("elsewhere", 1))),
    }.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(data)
    return tuple(str(folder) if word == str(tmp_path / "job") else word for word in job)


def test_large_files_are_read_by_one_command_for_all(
    run_bulk: Run, large: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.bulk.planning.Plan.read", None)
    looks: list[bool] = []
    look = Board.take_plan

    def place_manifest(board: Board) -> bool:
        looks.append(look(board))
        if len(looks) == 5:  # Now the other command is done.
            (tmp_path / "large" / "claims" / "plan").unlink()
            shutil.copy(tmp_path / "job" / "manifest.json", tmp_path / "large")
        return looks[-1]

    monkeypatch.setattr(Board, "take_plan", place_manifest)
    done = run_bulk(*large)
    assert done.returncode == 0, done.stderr
    assert looks == [False] * 5


def test_a_command_does_not_wait_beyond_its_time_for_one_that_reads_large_files(
    run_bulk: Run, large: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.cli.commands.bulk._end_of", lambda minutes: minutes - 100)
    late = run_bulk(*large, "--minutes", "100")
    assert late.returncode == 75
    assert late.stderr == "note: Not finished in time: another command still reads the files.\n"
    assert names(tmp_path / "large" / "claims") == ["plan"]


def test_large_files_are_read_again_if_their_command_died_and_its_beats_are_no_other_job(
    run_bulk: Run, large: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "large" / "workers" / "elsewhere-1").unlink()
    done = run_bulk(*large)
    assert done.returncode == 0, done.stderr
    manifest = (tmp_path / "large" / "manifest.json").read_bytes()
    assert manifest == (tmp_path / "job" / "manifest.json").read_bytes()
    assert not names(tmp_path / "large" / "claims")
