"""A worker of ``pellucid bulk``: lines of shards in, lines of results out."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from pellucid.bulk.shards import read_row
from pellucid.cli.lines.decoding_options import INPUT, ConstraintOptions, useless_options
from pellucid.cli.lines.translation_job import TranslationJob
from pellucid.machine.devices import VISIBLE
from pellucid.machine.hardware import search_garbage_rarely, use_threads
from pellucid.machine.processes import serve_parent
from pellucid.text.reading.lines import split_lines
from pellucid.text.reading.row_sides import Fault
from pellucid.translate.results import Translation
from pellucid.translate.translator import load


class Work:
    """A loaded model with the options of a job.

    Args:
        task: the job's task, as `pellucid.cli.commands.bulk` makes it.
        threads: the processor threads to use.
    """

    def __init__(self, task: Mapping[str, Any], threads: int) -> None:
        use_threads(threads)
        search_garbage_rarely()
        self._task = task
        files = task["files"]
        model, *others = files["model"]
        translator = load(model, device=task.get("device"), ensemble=others)
        given = task["constraints"]
        # Names of files are apart, since workers may run in other folders.
        forbid = [*given["forbid"], *(f"@{path}" for path in files["forbid"])]
        named = {"forbid": forbid, "glossary": files["glossary"]}
        constraints = ConstraintOptions.read({**given, **named}, "a shard")
        self._job = TranslationJob(
            translator,
            task["given"],
            constraints.for_model(translator, task["to"]),
            form=task["form"],
            treatment=task["treatment"],
            ensemble=tuple(others),
            to=task["to"],
        )

    def introduce(self) -> list[Any]:
        """Return everything that the results depend on, and warnings."""
        job = self._job
        identity = {**job.identify(), "--score": self._task["score"]}
        del identity["--threads"]  # The engine's results do not depend on them.
        useless = useless_options(job.given, job.decoding, is_score_shown=job.form != "plain")
        return [list(identity.items()), [*job.useless_treatment(), *useless]]

    def answer(self, place: Sequence[Any], raw: bytes) -> list[Any]:
        """Answer a window: the text to write, and the lines of it that failed.

        Args:
            place: of its first line: see `pellucid.bulk.driver.WorkerWindow.place`.
            raw: its lines.
        """
        first, path, number, columns, error = place
        lines = list(split_lines(io.BytesIO(raw), path, keeps_damaged=True, first=number))
        written = []
        failures = []
        for start in range(0, len(lines), self._job.max_lines):
            part = lines[start : start + self._job.max_lines]
            rows = [
                read_row(self._task["kind"], line, columns, f"{path}:{number + row}")
                for row, line in enumerate(part, start=start)
            ]
            faults = [error or (one.sentence if isinstance(one, Fault) else "") for one in rows]
            texts = [("", "") if fault else one for one, fault in zip(rows, faults, strict=True)]
            answers = self._work(first + start, part, texts, faults)
            for row, (text, reason) in enumerate(answers, start):
                written.append(text)
                if reason is not None:
                    failures.append((row, reason))
        return ["".join(written), failures]

    def _work(
        self, first: int, lines: Sequence[str], rows: Sequence[Any], faults: Sequence[str]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield the text to write for each row, and the reason if it failed."""
        if self._task["score"]:
            sources = [row[0] for row in rows]
            targets = [row[1] for row in rows]
            found = self._job.translator.score(sources, targets, to=self._task["to"])
            for scored, fault in zip(found, faults, strict=True):
                reason = fault or scored.error
                yield ("\n", reason) if reason else (f"{scored.log_probability:.6f}\n", None)
            return
        translations = self._job.translate({INPUT: [row[0] for row in rows]})
        for i, (line, one, fault) in enumerate(zip(lines, translations, faults, strict=True)):
            translation = Translation(line, (), fault) if fault else one
            yield self._job.write(first + i, translation), translation.error


def serve_windows(
    descriptor: int, task: Mapping[str, Any], threads: int, visible: str = ""
) -> NoReturn:
    """Be a process of `pellucid.bulk.local`: introduce itself, then answer windows.

    Args:
        descriptor: the connection to its parent.
        task: the job's task.
        threads: the processor threads to use.
        visible: the only device that it sees of those that workers share out, if any.
    """
    if visible:
        # Before PyTorch looks: also what it does on the first device is then done on this one.
        os.environ[VISIBLE] = visible

    def set_up() -> Callable[[Callable[[], bytes]], Any]:
        work = Work(task, threads)

        def answer(take: Callable[[], bytes]) -> Any:
            place = json.loads(take())
            return work.introduce() if place is None else work.answer(place, take())

        return answer

    serve_parent(descriptor, set_up)
