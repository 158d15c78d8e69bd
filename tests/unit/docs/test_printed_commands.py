"""Commands and options that pages, data, help and sentences name: the application has them."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from functools import cache
from itertools import chain
from typing import Any

import pytest
import typer
import yaml
from page_code import ROOT, find_pages

from pellucid.cli.app import load_command
from pellucid.cli.overview import COMMANDS, SUBCOMMANDS

SRC = ROOT / "src" / "pellucid"

# What stands for something else: FILE, runs/NAME, {name}, \u2026
PLACEHOLDER = re.compile(r"[A-Z]+(_[A-Z]+)*\b|[{}\u2026]|\.\.\.")

REPLACED = "replaced_options.toml"

# Options of other programs that sentences and comments name, and what every command has.
OTHERS = {
    "--gemm-type",
    "--force-reinstall",
    "--no-deps",
    "--paired-bs",
    "--help",
    "--version",
    "--quiet",
}

# Names in style sheets.
IN_STYLE = re.compile(r"var\(--|--[\w-]+:|--pellucid")


@cache
def load(name: str) -> Any:
    return load_command(name)


@cache
def every_option() -> frozenset[str]:
    names = [one for one in COMMANDS if one not in SUBCOMMANDS]
    names += [f"{one} {word}" for one, words in SUBCOMMANDS.items() for word in words]
    found = set(OTHERS)
    for name in names:
        for parameter in load(name).params:
            found.update((*parameter.opts, *parameter.secondary_opts))
    return frozenset(found)


def check_command(text: str) -> str:
    """Parse a command as the application does; return what is wrong with it.

    One with placeholders, or only an option, is not whole: its options must exist.
    """
    text = re.split(r"\s(?:[|>&]|<(?!\()|\d>)", text)[0]
    try:
        words = shlex.split(text)[1:]
    except ValueError as error:
        return str(error)
    if not words or words[0] in ("help", "-V", "--version", "-h", "--help"):
        return "" if all(word in every_word() for word in words[1:]) else f"no {words[1:]}"
    name = words.pop(0)
    if name in SUBCOMMANDS:
        if not words or words[0] == "--help":
            return ""
        name = f"{name} {words.pop(0)}"
    if PLACEHOLDER.search(name):
        return ""
    if name not in every_word():
        return f"no command {name}"
    command = load(name)
    try:
        command.make_context(name, list(words), resilient_parsing=False)
    except (typer.Exit, SystemExit):
        return ""
    except Exception as error:
        said = getattr(error, "message", "") or str(error)
        # A command may be named by an option alone.
        is_short = "Missing" in type(error).__name__ or "requires an argument" in said
        if not (is_short or PLACEHOLDER.search(" ".join(words))) or "o such option" in said:
            return said
        return unknown_options(words, command)
    return ""


def unknown_options(words: list[str], command: Any) -> str:
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = {word.partition("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)}
    return f"no option {given - known}" if given - known - {"--help"} else ""


@cache
def every_word() -> frozenset[str]:
    subcommands = (f"{one} {word}" for one, words in SUBCOMMANDS.items() for word in words)
    return frozenset({*COMMANDS, *subcommands, "COMMAND", *chain(*SUBCOMMANDS.values())})


def quoted(text: str) -> list[str]:
    """Find commands between marks of code: `pellucid look demo`."""
    return re.findall(r"(?<!`)`\$?\s*(pellucid [^`]+)`(?!`)", re.sub(r"\s*\n\s*", " ", text))


@cache
def sentences() -> tuple[tuple[str, str], ...]:
    """Find the text that the package may print, with its place; values stand as {}."""
    found = []
    for path in sorted(SRC.rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        if "--" not in code and "pellucid " not in code:
            continue
        nodes = list(ast.walk(ast.parse(code)))
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        parts = {id(one) for node in joined for one in node.values}
        for node in nodes:
            text = ""
            if isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
                )
            elif isinstance(node, ast.Constant) and id(node) not in parts:
                text = str(node.value)
            if "--" in text or "pellucid " in text:
                found.append((f"{path.relative_to(ROOT)}:{node.lineno}", text))  # type: ignore[attr-defined]
    for path in sorted(SRC.rglob("*.toml")):
        if path.name != REPLACED:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
    return tuple(found)


def test_every_command_between_marks_on_a_page_is_one() -> None:
    found = [
        (page, command) for page in find_pages() for command in quoted(page.read_text("utf-8"))
    ]
    assert len(found) > 200
    wrong = [
        f"{page}: {command}: {fault}"
        for page, command in found
        if (fault := check_command(command))
    ]
    assert not wrong, "\n".join(wrong)


def commands_of_deployment() -> dict[str, list[str]]:
    """What an image, a unit and a cluster start."""
    folder = ROOT / "deploy"
    image = (folder / "Containerfile").read_text(encoding="utf-8")
    unit = (folder / "pellucid.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=\S+/pellucid (.*)$", unit, re.MULTILINE)
    assert started
    documents = yaml.safe_load_all((folder / "kubernetes.yaml").read_text(encoding="utf-8"))
    pod = next(one for one in documents if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    return {
        "image": json.loads(re.findall(r"^CMD (.*)$", image, re.MULTILINE)[-1]),
        "unit": shlex.split(started[1]),
        "pod": pod["containers"][0]["args"],
    }


@pytest.mark.parametrize("place", ["image", "unit", "pod"])
def test_what_a_deployment_starts_is_a_command(place: str) -> None:
    words = commands_of_deployment()[place]
    assert words[0] == "serve"
    assert check_command(shlex.join(["pellucid", *words])) == ""


def test_every_command_in_a_sentence_of_the_package_is_one() -> None:
    wrong = []
    count = 0
    for place, text in sentences():
        for command in quoted(text):
            count += 1
            if fault := check_command(command):
                wrong.append(f"{place}: {command}: {fault}")
        for name, rest in re.findall(
            r"(?<![`\w./-])pellucid ((?:bulk |keys )?[a-z]+)([^\n`]*)", text
        ):
            if name not in every_word() or name in SUBCOMMANDS:
                continue
            count += 1
            # The sentence may go on after the command.
            options = re.findall(r"(?<!\S)(--[a-z][a-z-]*)", re.split(r"[.;:,)](?:\s|$)", rest)[0])
            if fault := unknown_options(options, load(name)):
                wrong.append(f"{place}: pellucid {name}{rest}: {fault}")
    assert count > 100
    assert not wrong, "\n".join(wrong)


def test_every_option_that_a_sentence_names_exists() -> None:
    wrong = [
        f"{place}: {option}"
        for place, text in sentences()
        if not IN_STYLE.search(text)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w-]*[={}])", text)
        if option not in every_option()
    ]
    assert not wrong, "\n".join(wrong)


def test_every_option_that_replaces_an_old_one_exists() -> None:
    (path,) = SRC.rglob(REPLACED)
    wrong = []
    for command, options in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for old, new in options.items():
            if new.startswith("pellucid "):
                fault = check_command(new)
            elif command == "pellucid":
                fault = "" if new in every_option() else new
            else:
                given = re.findall(r"(?<![\w-])--[a-z][a-z-]+", new)
                fault = unknown_options(given, load(command.removeprefix("pellucid ")))
            if fault:
                wrong.append(f"{command} {old} = {new}: {fault}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "command",
    [
        "pellucid lok demo",
        "pellucid look demo --no-such-option",
        "pellucid look MODEL --no-such-option FILE",
        "pellucid train --minutes many",
        "pellucid bulk look",
    ],
)
def test_guard_a_wrong_command_is_found(command: str) -> None:
    assert check_command(command)


def test_guard_a_part_of_a_command_passes() -> None:
    for command in ("pellucid look --measure", "pellucid train TEXT -o runs/NAME", "pellucid help"):
        assert not check_command(command)
