"""The blocks of code on the pages: read them, and run them in a folder that has what they name.

A comment above a block tells how it runs, if it does not run as it stands:

- ``<!-- run with: --minutes 20 = --minutes 1; srun = -->`` writes something else in the place of
  what would take too long, or needs other machines;
- ``<!-- run by: tests/serve/test_process.py -->`` names the test that does the same;
- ``<!-- not run: needs a GPU -->`` says why it runs nowhere. Tests count these.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = ("sh", "console", "python", "toml")
"""Languages of blocks that run; all others show output or files of other programs."""

SHOWS = ("", "text", "diff", "ini", "dockerfile", "nginx", "json", "yaml")
MADE = ("docs/lessons/", "docs/claims.md")
"""Pages that a program writes, whose commands it runs, and `test_lesson_command` too."""

_BLOCK = re.compile(
    r"(?:^<!-- (?P<how>not run|run by|run with): (?P<said>[^\n]+) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        page: the name of its page.
        line: the number of its first line.
        language: as the page names it.
        text: the code.
        reason: why it runs nowhere; empty if it runs.
        runner: the test that runs it; empty if the page's own blocks do.
        changes: what stands on the page, and what runs in its place.
        output: what the page says that it prints, if it does.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str
    output: str | None
    runner: str = ""
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether it runs among the blocks of its page."""
        return self.language in RUNS and not self.reason and not self.runner

    @property
    def runnable(self) -> str:
        """The code with its changes."""
        text = self.text
        for old, new in self.changes:
            assert old in text, f"{self.place}: {old}"
            text = text.replace(old, new)
        return text


def find_pages() -> list[Path]:
    """Find every page that people write, and those that programs write."""
    own = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
    return [*own, *sorted((ROOT / "docs").rglob("*.md"))]


def read_blocks(page: Path) -> list[Block]:
    """Read the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    found = []
    for match in _BLOCK.finditer(text):
        said = {match["how"]: match["said"]}
        changes = [re.split(r" = ?", one) for one in said.get("run with", "").split("; ") if one]
        block = Block(
            name,
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["text"],
            said.get("not run", ""),
            match["output"],
            runner=said.get("run by", ""),
            changes=tuple((old, new) for old, new in changes),
        )
        found.append(block)
    return found


def describe_left_out(blocks: list[Block]) -> str:
    """Count the blocks that run nowhere, with the reasons."""
    left_out = [one for one in blocks if one.language in RUNS and one.reason]
    reasons = "".join(f"\n  {one.place}: {one.reason}" for one in left_out)
    runs = [one for one in blocks if one.is_run]
    elsewhere = sum(bool(one.runner) for one in blocks)
    return (
        f"{len(runs)} blocks run ({sum(bool(one.changes) for one in runs)} at a smaller size), "
        f"{elsewhere} are run by tests, {len(left_out)} run nowhere:{reasons}"
    )


def all_blocks() -> list[Block]:
    """Read the blocks of all pages except those that a program writes."""
    blocks = [block for page in find_pages() for block in read_blocks(page)]
    return [block for block in blocks if not block.page.startswith(MADE)]


def commands(text: str) -> list[list[str]]:
    """Split what a shell block gives to pellucid into arguments, without redirections."""
    text = re.sub(r"\\\n\s*", " ", text)
    found = []
    for line in text.splitlines():
        for part in re.split(r"\s\|\s|\s&&\s", line.removeprefix("$ ")):
            if part.startswith("pellucid "):
                # A quoted path such as "encoder > decoder" is no redirection.
                cut = re.match(r"""(?:[^"'<>]|"[^"]*"|'[^']*'|(?<!\s)[<>])*""", part)
                words = cut[0] if cut else ""
                found.append(shlex.split(words.rstrip("|"), comments=True)[1:])
    return found


def run_shell(block: Block, folder: Path, env: dict[str, str]) -> str:
    """Run a block of shell commands. Return a complaint, or nothing."""
    text, wanted = block.runnable, block.output
    if block.language == "console":
        lines = text.splitlines(keepends=True)
        text = "".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        wanted = "".join(line for line in lines if not line.startswith("$ "))
        text = "exec 2>&1\n" + text
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=os.environ | env,
        input=b"The dog ate the bread.\n",
        capture_output=True,
    )
    errors = done.stderr.decode(errors="replace").strip()[-400:]
    if done.returncode:
        return f"exit code {done.returncode}: {errors or done.stdout.decode()[-400:]}"
    return compare(wanted, done.stdout.decode())


_COMMENTED = re.compile(r"^(print\(.*\))  # (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_MARK = "\x1d"


def mark_prints(text: str) -> str:
    """Put marks around what a ``print(…)`` prints that has a comment on its line."""
    mark = f"print({_MARK!r})"
    return _COMMENTED.sub(lambda match: f"{mark}\n{match[0]}\n{mark}", text)


def complain(block: Block, shown: str) -> str:
    """Compare what a block printed with what the page says, below it and after its prints."""
    parts = shown.split(f"{_MARK}\n")
    comments = [match[2] for match in _COMMENTED.finditer(block.text)]
    complaints = [compare(block.output, "".join(parts))]
    for comment, printed in zip(comments, parts[1::2], strict=True):
        complaints.append(compare_comment(comment, printed))
    return "\n".join(filter(None, complaints))


def compare_comment(comment: str, printed: str) -> str:
    """Compare a comment up to its first ": " with what was printed; numbers as it rounds them."""
    said = comment.partition(": ")[0]
    wanted = _NUMBER.findall(said)
    found = _NUMBER.findall(printed)
    complaint = compare(_NUMBER.sub("0", said), _NUMBER.sub("0", printed))
    if not complaint and "…" not in said:
        digits = [len(number.partition(".")[2]) for number in wanted]
        rounded = [round(float(a), b) for a, b in zip(found, digits, strict=True)]
        is_same = rounded == [float(number) for number in wanted]
        complaint = "" if is_same else compare(said, printed)
    return complaint


def run_python(blocks: list[Block], folder: Path, env: dict[str, str]) -> str:
    """Run all Python of a page, as one program. Return a complaint, or nothing."""
    if any(block.text.startswith(">>> ") for block in blocks):
        text = "\n".join(block.text for block in blocks)
        test = doctest.DocTestParser().get_doctest(text, {}, blocks[0].page, None, 0)
        failures: list[str] = []
        doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
        return "".join(failures)
    mark = "\x1e"
    code = f"\nprint({mark!r})\n".join(mark_prints(block.runnable) for block in blocks)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | env, capture_output=True
    )
    if done.returncode:
        return done.stderr.decode()[-600:]
    shown = done.stdout.decode().split(f"{mark}\n")
    complaints = [complain(block, text) for block, text in zip(blocks, shown, strict=True)]
    return "\n".join(filter(None, complaints))


def check_toml(block: Block) -> str:
    """Compare the keys of a recipe with those that exist. Return a complaint, or nothing."""
    from pellucid.config import Recipe

    values = tomllib.loads(block.text)
    sections = {name: field.annotation for name, field in Recipe.model_fields.items()}
    unknown = [
        f"{name}.{key}"
        for name, entries in values.items()
        if name in sections
        for key in entries
        if key not in sections[name].model_fields  # type: ignore[union-attr]
    ]
    return f"unknown keys: {', '.join(unknown)}" if unknown else ""


def compare(wanted: str | None, shown: str) -> str:
    """Compare what a page says with what was printed; ``…`` stands for anything."""
    if wanted is None:
        return ""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in wanted.split("…"))
    shown = " ".join(shown.split())
    is_same = re.fullmatch(pattern.replace(r".*\ ", ".*").replace(r"\ .*", ".*"), shown, re.DOTALL)
    return "" if is_same else json.dumps({"page": wanted, "printed": shown}, ensure_ascii=False)
