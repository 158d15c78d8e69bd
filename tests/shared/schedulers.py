"""Slurm and Kubernetes as they treat one job: what they start, end, and start again, and when.

Sources:
    Slurm's manual pages of sbatch, scontrol and scancel; slurm.conf's KillWait. Kubernetes'
    documentation of Jobs (work queues, backoff limit, pod failure policy) and of the end of pods.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS_TO_END = 30.0
"""Time between SIGTERM and SIGKILL: KillWait, terminationGracePeriodSeconds."""

_SCONTROL = """#!/bin/sh
[ "$1" = requeue ] && touch "$SLURM_TEST_FOLDER/requeue-$2"
"""


def end_group(process: subprocess.Popen[bytes], *, is_sudden: bool = False) -> None:
    """End a process with those that it started: SIGTERM, some time, and SIGKILL."""
    with suppress(ProcessLookupError):
        if not is_sudden:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclass
class Task:
    """A task of an array, or a pod."""

    number: int
    process: subprocess.Popen[bytes]
    state: str = "RUNNING"
    starts: int = 1


@dataclass
class Slurm:
    """An array job of a script.

    Args:
        script: what ``sbatch`` was given.
        folder: for files of its own.
        environment: of the tasks; its PATH has the command.
        size: the number of tasks, in the place of those of ``--array``.
    """

    script: Path
    folder: Path
    environment: Mapping[str, str]
    size: int
    options: dict[str, str] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, value in re.findall(
            r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", self.script.read_text(), re.MULTILINE
        ):
            self.options[name] = value
        assert re.fullmatch(r"0-\d+", self.options["array"])
        scontrol = self.folder / "bin" / "scontrol"
        scontrol.parent.mkdir(exist_ok=True)
        scontrol.write_text(_SCONTROL)
        scontrol.chmod(0o755)
        self.tasks = [Task(number, self._start(number)) for number in range(self.size)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        own = {
            "SLURM_JOB_ID": f"{100 + number}",
            "SLURM_ARRAY_TASK_ID": f"{number}",
            "SLURM_TEST_FOLDER": str(self.folder),
            "PATH": f"{self.folder / 'bin'}:{self.environment['PATH']}",
            "PELLUCID_TEST_MACHINE": f"node-{number}",
        }
        environment = {**self.environment, **own}
        return subprocess.Popen(["bash", str(self.script)], env=environment, start_new_session=True)

    def poll(self) -> None:
        """See which tasks have ended, and start again those that are queued."""
        for task in self.tasks:
            asked = self.folder / f"requeue-{100 + task.number}"
            if task.state == "RUNNING" and asked.exists():
                end_group(task.process)
                asked.unlink()
                self._queue(task)
            elif task.state == "RUNNING" and (code := task.process.poll()) is not None:
                task.state = "FAILED" if code else "COMPLETED"

    def _queue(self, task: Task) -> None:
        task.starts += 1
        task.process = self._start(task.number)
        task.state = "RUNNING"

    def warn(self, task: Task) -> None:
        """Send the signal before the time limit; the limit comes if that does not end the task."""
        match = re.fullmatch(r"B:([A-Z0-9]+)@(\d+)", self.options["signal"])
        assert match
        task.process.send_signal(getattr(signal, f"SIG{match[1]}"))
        try:
            task.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            end_group(task.process)
            task.state = "TIMEOUT"

    def lose(self, task: Task, *, is_sudden: bool) -> None:
        """Take the node away: it fails, or a more important job needs it."""
        end_group(task.process, is_sudden=is_sudden)
        if "requeue" in self.options:
            # Whatever the script asked for meanwhile.
            (self.folder / f"requeue-{100 + task.number}").unlink(missing_ok=True)
            self._queue(task)
        else:
            task.state = "NODE_FAIL"

    def cancel(self, task: Task) -> None:
        """Do as ``scancel`` does; what asks for it can queue a cancelled task again."""
        end_group(task.process)
        task.state = "CANCELLED"
        if (self.folder / f"requeue-{100 + task.number}").exists():
            self._queue(task)

    @property
    def is_over(self) -> bool:
        """True if no task runs."""
        return all(task.state != "RUNNING" for task in self.tasks)

    def may_follow(self, dependency: str) -> bool:
        """Tell whether a job starts that depends on this one."""
        is_ok = all(task.state == "COMPLETED" for task in self.tasks)
        return self.is_over and {"afterok": is_ok, "afterany": True}[dependency]


@dataclass
class Kubernetes:
    """The controller of a Job without ``completions``, a work queue.

    Args:
        spec: of the Job.
        start: starts a container, of the pod with this number.
        parallelism: the number of pods at once, in the place of that of the Job.
    """

    spec: Mapping[str, Any]
    start: Callable[[int], subprocess.Popen[bytes]]
    parallelism: int
    pods: list[Task] = field(default_factory=list)
    num_started: int = 0
    num_failed: int = 0
    has_succeeded: bool = False
    condition: str = ""

    def __post_init__(self) -> None:
        pod = self.spec["template"]["spec"]
        assert pod["restartPolicy"] in ("Never", "OnFailure")
        # The API server refuses another combination.
        assert "podFailurePolicy" not in self.spec or pod["restartPolicy"] == "Never"
        assert self.spec.get("completions") is None
        while len(self.pods) < self.parallelism:
            self._add()

    def _add(self) -> None:
        self.num_started += 1
        self.pods.append(Task(self.num_started, self.start(self.num_started)))

    def poll(self) -> None:
        """See which pods have ended, and replace them if the Job's rules say so."""
        for pod in list(self.pods):
            code = pod.process.poll()
            if code is not None and not self.condition:
                self._end(pod, 128 - code if code < 0 else code, is_disrupted=False)
        if self.has_succeeded and not self.pods:
            self.condition = "Complete"

    def take_away(self, pod: Task, *, is_sudden: bool) -> None:
        """Take a pod's machine away: it is drained, or gone."""
        end_group(pod.process, is_sudden=is_sudden)
        code = pod.process.returncode
        self._end(pod, 128 - code if code < 0 else code, is_disrupted=True)

    def _end(self, pod: Task, code: int, *, is_disrupted: bool) -> None:
        self.pods.remove(pod)
        if code == 0:
            self.has_succeeded = True
            return
        action = self._action(code, is_disrupted=is_disrupted)
        self.num_failed += action == "Count"
        if action == "FailJob" or self.num_failed > self.spec["backoffLimit"]:
            self.condition = "Failed"
            for other in self.pods:
                end_group(other.process)
            self.pods.clear()
        elif not self.has_succeeded:
            self._add()

    def _action(self, code: int, *, is_disrupted: bool) -> str:
        for rule in self.spec.get("podFailurePolicy", {"rules": []})["rules"]:
            if codes := rule.get("onExitCodes"):
                assert codes["values"] == sorted(set(codes["values"]) - {0})
                if (code in codes["values"]) == (codes["operator"] == "In"):
                    return str(rule["action"])
            elif is_disrupted and {"type": "DisruptionTarget"} in rule["onPodConditions"]:
                return str(rule["action"])
        return "Count"

    @property
    def is_over(self) -> bool:
        """True if the Job is complete or has failed."""
        return bool(self.condition)
