"""Commands in the data of claims and lessons: the application itself parses each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shared.page_code import commands

from pellucid.cli.app import dispatch, load_command
from pellucid.lessons.walks.walk import NAMES, load_walk
from pellucid.lessons.why.known_claims import CLAIMS


def commands_in_data() -> list[str]:
    statements = [one for name in NAMES for one in load_walk(name).statements]
    tried = [command for one in statements for command in (one.command, *one.to_try)]
    return sorted({*tried, *(command for claim in CLAIMS.values() for command in claim.to_try)})


def parse(command: str) -> list[str]:
    ((name, *arguments),) = commands(command)
    load_command(name).make_context(name, list(arguments), resilient_parsing=False)
    return [name, *arguments]


def test_every_command_in_data_has_only_arguments_that_exist() -> None:
    found = commands_in_data()
    assert len(found) > 100
    for command in found:
        assert parse(command)[0] in (
            "attend",
            "demo",
            "inspect",
            "look",
            "translate",
            "claim",
            "why",
        )


@pytest.mark.parametrize("command", [one for one in commands_in_data() if " inspect " in one])
def test_drawings_to_try_are_drawn(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dispatch(parse(command)) == 0


def test_guard_sentence_inside_a_command_is_found() -> None:
    with pytest.raises(Exception, match="extra argument"):
        parse("pellucid attend encoder-layer --row 0 follows one word.")


def test_sentence_and_commands_to_try_are_written_apart() -> None:
    (both,) = [one for one in load_walk("notes").statements if len(one.to_try) == 2]
    assert both.write_next("`{}`") == (
        "`pellucid claim memory` · `pellucid claim gradients`: what else it says of recurrence."
    )
    for name in NAMES:
        for statement in load_walk(name).statements:
            assert "pellucid " not in statement.vary
