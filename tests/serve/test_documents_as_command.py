"""A document has the same words and the same remarks from the service and from the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from served import Live

TEXTS = (
    "The dog of %s eats %d pizzas.",
    "The cat sees %d dogs and %d cars.",
    "%d red cats",
    "%d red cars",
    "The dog of {name} is big.",
    "Hello %(user)s, the cat eats <b>the red fish</b>.",
    "The %count% dogs see <a href='x'>the old %name%</a>.",
    "The red book",
    "We jumped over gazebos.",
    "Something fell on my head.",
    "{{ name }} eats the pizza of ${friend}.",
)
PO = "".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in TEXTS)
HTML = "".join(f"<p>{text}</p>\n" for text in TEXTS)
JINJA = "<p>{% if dog %}The dog{% else %}The cat{% endif %} eats {{ count }} pizzas.</p>\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(dict(enumerate(TEXTS)), indent=1)),
        ("a.po", 'msgid ""\nmsgstr "Language: fr\\n"\n\n' + PO),
        ("a.html", HTML + JINJA),
        ("a.md", "\n\n".join(TEXTS)),
    ],
)
def test_command_and_service_write_the_same_document(
    live: Live,
    run_here: Callable[..., CompletedProcess[str]],
    tmp_path: Path,
    name: str,
    content: str,
) -> None:
    source, output, report = (tmp_path / one for one in (name, f"out-{name}", "report.jsonl"))
    source.write_text(content)
    done = run_here(
        *("translate", "demo", "-i", str(source), "-o", str(output), "--report", str(report)),
        *("--threads", "1"),
    )
    assert done.returncode == 0, done.stderr
    ours, reasons = translate_file(live, name, content)
    assert ours == output.read_text()
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert reasons == [(one["line"], one["key"], one["reason"]) for one in rows]
    # Words that every hypothesis leaves out are named, and not by the name of a flag.
    assert any("missing in the translation: fell" in reason for _, _, reason in reasons)


def test_html_in_json_names_what_is_unsure(live: Live) -> None:
    body = {"texts": ["<p>Something fell on my head.</p>", "<p>The red book</p>"], "format": "html"}
    first, second = live.post("/v1/translate", body).json()["translations"]
    assert "missing" in first["unsure"][0]["reason"]
    assert "unsure" not in second


def translate_file(live: Live, name: str, content: str) -> tuple[str, list[tuple[int, str, str]]]:
    form = {"source": "en", "target": "fr"}
    answer: Any = live.client.post(
        "/translate_file", data=form, files={"file": (name, content.encode())}
    ).json()
    written = live.client.get(answer["translatedFileUrl"]).text
    rows = answer.get("unsure", [])
    return written, [(one["line"], one["key"], one["reason"]) for one in rows]
