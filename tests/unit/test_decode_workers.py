"""Worker processes answer as one process does, and end when they should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.lines.constraints import ConstraintOptions
from pellucid.cli.lines.job import Job
from pellucid.cli.options import CONSTRAINTS
from pellucid.config import DecodingConfig
from pellucid.corpora import iterate_split
from pellucid.decode import workers
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.decode.workers import WorkerPool, is_worth
from pellucid.errors import BundleError, ConfigurationError, InputError, PellucidError
from pellucid.machine.hardware import share_threads
from pellucid.machine.processes import _error_of_json, to_bytes
from pellucid.translate.results import Translation
from pellucid.translate.translator import Translator
from pellucid.translate.workers import load_for_worker

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

NUM_LINES = 211


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [example.source for example in islice(iterate_split("validation"), NUM_LINES)]


@pytest.fixture(scope="module")
def alone() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def shared() -> Iterator[Translator]:
    translator = pellucid.load("demo", workers=2)
    yield translator
    assert translator.workers is not None
    translator.workers.close()


def figures(translation: Translation) -> list[float]:
    return [x for h in translation.hypotheses for x in (*h.token_log_probabilities, h.score)]


ASKED = Constraints(prefix="La", forbidden=("est", "la pizza"), required=("four", "chat"))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 4, "n_best": 3},
        {"sample": True, "n_best": 2, "temperature": 1.5},
        {"strict": True},
        {"beam": 6, "constraints": ASKED},
        {"alternatives": True, "n_best": 2, "constraints": Constraints(prefix="Le")},
    ],
    ids=["greedy", "n-best", "samples", "strict", "constraints", "alternatives"],
)
def test_workers_give_what_one_process_gives(
    options: dict[str, Any], lines: list[str], alone: Translator, shared: Translator
) -> None:
    given = lines[:71] if {"sample", "strict", "constraints"} & options.keys() else lines
    expected = alone.translate(given, **options)
    found = shared.translate(given, **options)
    for one, other in zip(expected, found, strict=True):
        assert (one.source, one.error) == (other.source, other.error)
        assert [(h.text, h.ids) for h in one.hypotheses] == [
            (h.text, h.ids) for h in other.hypotheses
        ]
        assert figures(other) == pytest.approx(figures(one), abs=1e-4)
    assert sum(bool(one.text) for one in expected) > len(given) // 2
    assert shared.workers is not None
    assert len(shared.workers.pids) == 2


def test_few_lines_start_no_worker_and_one_that_cannot_start_is_a_sentence(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = pellucid.load("demo", workers=2)

    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert all(t.text for t in translator.translate([*lines[:63], "", " "])[:63])
    with pytest.raises(PellucidError, match="Resource temporarily unavailable") as caught:
        translator.translate(lines[:64])
    assert caught.value.exit_code == 1
    assert translator.workers is not None
    assert translator.workers.pids == []


def test_threads_are_shared_and_a_worker_has_one_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert [share_threads(count) for count in (1, 2, 3, 7, 11)] == [7, 3, 2, 1, 1]
    assert [is_worth(count, 3) for count in (95, 96)] == [False, True]


@pytest.mark.parametrize("count", [-1, 0, 257])
def test_impossible_number_of_workers_is_refused(count: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"between 1 and 256, but is {count} \(--workers"):
        pellucid.load("demo", workers=count)


def test_request_comes_out_as_it_went_in(alone: Translator) -> None:
    builder = RequestBuilder(alone.tokenizer, [alone.model.config])
    ids = alone.tokenizer.encode_source("The cat slept.")
    asked = builder.build('"Chat"\u2028\udcff', ids, ASKED, DecodingConfig(min_length=3, beam=2))
    asked = Request(**{**vars(asked), "forbidden": ((5,), (7, 11))})
    assert all(getattr(asked, name) for name in vars(asked)), "every field should have something"
    answerer = workers._Answerer(alone.decoder, alone.tokenizer)
    sent = json.loads(to_bytes(workers._request_to_json(asked)))
    same = answerer.request_of_json(sent)
    for name, value in vars(asked).items():
        if name not in ("forbidden_texts", "spelling"):
            assert getattr(same, name) == value
    assert [p.text for p in same.forbidden_texts] == [p.text for p in asked.forbidden_texts]
    assert [p.bans for p in same.forbidden_texts] == [p.bans for p in asked.forbidden_texts]
    assert same.spelling is same.forbidden_texts[0].spelling


def test_model_that_was_replaced_is_refused(bundle_folder: Path) -> None:
    demo = load_bundle(resolve_model("demo"))
    assert load_for_worker([(str(demo.folder), demo.model_hash)])[1].vocabulary("target")
    with pytest.raises(BundleError, match="was replaced"):
        load_for_worker([(str(bundle_folder), demo.model_hash)])


STAND_IN = """
import os, signal
from pellucid.decode.hypothesis import Hypothesis
from pellucid.errors import InputError

class Decoder:
    def decode(self, requests, config, *, batch_tokens):
        for request in requests:
            if request.key == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if request.key == "refuse":
                raise InputError("It must not shout.")
            if request.key.startswith("search for ever"):
                open(request.key.partition(":")[2], "w").close()
                while True:
                    pass
        return [(Hypothesis(one.source_ids, (-0.1, 1 / 3), True, 1e-300),) for one in requests]

def load(greeting):
    assert greeting == "good day"
    print("what a library may write to standard output")
    return Decoder(), None
"""


@pytest.fixture
def pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_children: None
) -> Iterator[WorkerPool]:
    """One worker with a search that does what the requests' keys say."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    pool = WorkerPool("stand_in:load", {"greeting": "good day"}, workers=1)
    yield pool
    pool.close()


def ask(pool: WorkerPool, *keys: str) -> list[tuple[int, ...]]:
    requests = [Request((5, 7 + place), 11, key=key) for place, key in enumerate(keys)]
    answers = pool.decode(requests, DecodingConfig(), batch_tokens=13)
    assert all(h.token_log_probabilities == (-0.1, 1 / 3) for (h,) in answers)
    return [hypothesis.ids for (hypothesis,) in answers]


def test_worker_that_dies_is_a_sentence_and_an_error_in_one_comes_out_as_itself(
    pool: WorkerPool,
) -> None:
    with pytest.raises(PellucidError, match="ended by signal 9, as happens when memory") as caught:
        ask(pool, "", "die")
    assert caught.value.exit_code == 1
    assert pool.pids == []
    # The next request starts another.
    assert ask(pool, "", "", "") == [(5, 7), (5, 8), (5, 9)]
    with pytest.raises(InputError, match="It must not shout") as refused:
        ask(pool, "", "refuse")
    assert type(refused.value) is InputError
    assert "stand_in.py" in refused.value.__notes__[0]
    assert pool.pids == []


def test_unforeseen_error_in_a_worker_keeps_its_name() -> None:
    error = _error_of_json("ZeroDivisionError", "by nothing", "where")
    assert type(error) is RuntimeError
    assert str(error) == "ZeroDivisionError in a worker process: by nothing"
    assert type(_error_of_json("MemoryError", "", "where")) is MemoryError


def test_worker_ends_in_the_middle_of_a_search_when_its_parent_is_gone(
    pool: WorkerPool, tmp_path: Path
) -> None:
    pool.start()
    (worker,) = pool._running
    sign = tmp_path / "searching"
    asked = Request((5,), 11, key=f"search for ever:{sign}")
    worker.send(to_bytes([[workers._request_to_json(asked)], {}, 13]))
    while not sign.exists():
        time.sleep(0.01)
    worker.connection.close()  # as the system does for a parent that was killed
    assert worker.process.wait(timeout=60) == 0


WITH_SMALL_WINDOWS = (
    "import sys; from pellucid.cli import main; from pellucid.cli.lines import job\n"
    "job.MAX_LINES = 150\n"
    "sys.exit(main.run(sys.argv[1:]))\n"
)


def test_ctrl_c_ends_command_and_workers_with_one_sentence(
    start: Callable[..., subprocess.Popen[bytes]], lines: list[str], write_lines: WriteLines
) -> None:
    source = write_lines("in", *lines * 100)
    command = [sys.executable, "-c", WITH_SMALL_WINDOWS, "translate", "demo", "--workers", "2"]
    streams = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    process = start([*command, "-i", source], kind=Forked, start_new_session=True, **streams)
    assert process.stdout is not None
    assert process.stdout.readline().endswith(b"\n")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    # Workers have standard error too, so that it ends when they have.
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == b"pellucid: Stopped by Ctrl-C.\n"


def test_command_says_how_many_workers_and_when_they_are_of_no_use(
    run_here: Run, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    stdin = "".join(f"{line}\n" for line in lines[:3])
    done = run_here("translate", "demo", "--workers", "3", "--progress", stdin=stdin)
    assert done.returncode == 0
    assert ", with 3 workers of 2 threads." in done.stderr
    useless = run_here("translate", "demo", "--workers", "3", "--stream", stdin=stdin)
    assert (useless.returncode, useless.stdout) == (0, done.stdout)
    assert useless.stderr == "pellucid: --workers has no effect on so few lines at once (1).\n"


def test_workers_are_part_of_what_an_output_depends_on() -> None:
    settings = [
        Job(
            pellucid.load("demo", workers=count),
            given={},
            constraints=ConstraintOptions.read(dict.fromkeys(CONSTRAINTS), "-"),
            form="plain",
            treatment={},
            ensemble=(),
            workers=count,
        ).identify()
        for count in (1, 2)
    ]
    assert settings[1] == settings[0] | {"--workers": 2}
