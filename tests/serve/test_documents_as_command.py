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
    ours, reasons, _ = translate_file(live, name, content)
    assert ours == output.read_text()
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert reasons == [(one["line"], one["key"], one["reason"]) for one in rows]
    # Words that every hypothesis leaves out are named, and not by the name of a flag.
    assert any("missing in the translation" in one and " fell " in one for _, _, one in reasons)


TERMS = "dog,chienne\ncat,chat\nred,rouge|*free*\nbook,livre,yes\ncar,bagnole\n"


@pytest.mark.parametrize("name", ["a.json", "a.html"])
def test_command_and_service_say_the_same_of_a_glossary(
    live: Live, run_here: Callable[..., CompletedProcess[str]], tmp_path: Path, name: str
) -> None:
    content = {"a.json": json.dumps([*TEXTS, *TEXTS]), "a.html": HTML + HTML}[name]
    source, output, report, terms = (
        tmp_path / one for one in (name, f"out-{name}", "report.jsonl", "terms.csv")
    )
    source.write_text(content)
    terms.write_text(TERMS)
    done = run_here(
        *("translate", "demo", "-i", str(source), "-o", str(output), "--report", str(report)),
        *("--threads", "1", "--glossary", str(terms)),
    )
    assert done.returncode == 0, done.stderr
    ours, reasons, counts = translate_file(live, name, content, ("terms.csv", TERMS))
    assert ours == output.read_text()
    *rows, last = [json.loads(line) for line in report.read_text().splitlines()]
    assert reasons == [(one["line"], one["key"], one["reason"]) for one in rows]
    assert counts == last["glossary"]
    kinds = {name: [bool(one[name]) for one in counts] for name in ("hits", "forms", "misses")}
    assert all(map(any, kinds.values())), kinds


def test_html_in_json_names_what_is_unsure(live: Live) -> None:
    body = {"texts": ["<p>Something fell on my head.</p>", "<p>The red book</p>"], "format": "html"}
    first, second = live.post("/v1/translate", body).json()["translations"]
    assert "missing" in first["unsure"][0]["reason"]
    assert "unsure" not in second


HELD = [{"source": "dog", "target": "poisson"}, {"source": "cat", "target": "chat|chatte"}]
PLAIN = ["The dog ate it.", "The cat sees the dog.", "The house is red."]
TAGGED = [f"<p>{one.replace('The', '<b>The</b>')}</p>" for one in PLAIN]


@pytest.mark.parametrize("form", ["text", "html"])
def test_every_route_holds_the_terms_of_a_glossary(live: Live, form: str) -> None:
    texts = TAGGED if form == "html" else PLAIN
    body: dict[str, Any] = {"texts": texts, "format": form, "glossary": HELD}
    own = live.post("/v1/translate", body).json()["translations"]
    asked = {"q": texts, "source": "en", "target": "fr", "format": form, "glossary": HELD}
    theirs = live.client.post("/translate", json=asked).json()
    assert theirs["translatedText"] == [one["translation"] for one in own]
    assert theirs["terms"] == [one.get("terms", []) for one in own]
    assert [[(term["source"], term["outcome"]) for term in one] for one in theirs["terms"]] == [
        [("dog", "hit")],
        [("cat", "hit"), ("dog", "hit")],
        [],
    ]
    assert all("poisson" in one for one in theirs["translatedText"][:2])
    # A form writes the list as JSON, and one text has no list.
    form_body = {**asked, "q": texts[0], "glossary": json.dumps(HELD)}
    one = live.client.post("/translate", data=form_body).json()
    assert (one["translatedText"], one["terms"]) == (own[0]["translation"], own[0]["terms"])


def test_plurals_of_terms_are_found_if_asked_for(live: Live) -> None:
    terms = json.dumps([{"source": "dog", "target": "chien|*free*"}])
    asked = {"q": "The dogs eat.", "source": "en", "target": "fr", "glossary": terms}
    assert live.client.post("/translate", data=asked).json()["terms"] == []
    (term,) = live.client.post("/translate", data=asked | {"glossary_match": "forms"}).json()[
        "terms"
    ]
    assert (term["outcome"], term["written"]) == ("form", "chiens")
    wrong = live.client.post("/translate", data=asked | {"glossary_match": "all"})
    assert wrong.status_code == 400
    assert "glossary_match must be one of auto, exact, forms" in wrong.json()["error"]


def test_lines_of_a_file_hold_the_terms_of_a_term_base(live: Live) -> None:
    term = '<langSec xml:lang="{}"><termSec><term>{}</term></termSec></langSec>'
    both = term.format("en", "dog") + term.format("fr", "poisson")
    base = f"<tbx><text><body><conceptEntry>{both}</conceptEntry></body></text></tbx>"
    content = "\n".join(["", *PLAIN, "The house is red."] * 30)
    ours, reasons, counts = translate_file(live, "a.txt", content, ("Terms.TBX", base))
    assert ours.count("poisson") == 60
    row = {"source": "dog", "target": "poisson", "hits": 60, "forms": {}, "misses": {}}
    assert counts == [row]
    # Line 2 is the first with the term, which makes the translation far less likely.
    assert reasons[0][:2] == (2, "line 2")
    assert "check a glossary term: “poisson”" in reasons[0][2]
    assert len(reasons) == 60


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        (("a.csv", "dog"), "but has one column (a.csv:1)"),
        (("a.tbx", "<tbx>"), "XML must be well-formed"),
        (("a.tbx", "<tbx><langSec xml:lang='de'/></tbx>"), "must hold terms"),
        (("a.csv", b"\xff\xfea"), "the glossary must be UTF-8"),
        ('{"dog": "chien"}', "glossary must be a list"),
        ("dog=chien", "glossary must be a file, or a list of terms such as"),
        ('[{"source": "dog"}]', "glossary[0].target is missing"),
        (json.dumps([{"source": f"a{n}", "target": "b"} for n in range(101)]), "at most 100 terms"),
        ('[{"source": "dog", "target": "chien|"}]', "in each form"),
        (("a.xml", "<?xml version='1.0'?>\n<martif>"), "XML must be well-formed"),
    ],
)
def test_a_glossary_with_a_fault_is_refused(
    live: Live, glossary: str | tuple[str, str | bytes], message: str
) -> None:
    fields = {"source": "en", "target": "fr"}
    files: dict[str, Any] = {"file": ("a.html", b"The dog")}
    if isinstance(glossary, tuple):
        files["glossary"] = glossary
    else:
        fields["glossary"] = glossary
    answer = live.client.post("/translate_file", data=fields, files=files)
    assert answer.status_code in (400, 422)
    assert message in answer.json()["error"]


def translate_file(
    live: Live, name: str, content: str, glossary: tuple[str, str] | None = None
) -> tuple[str, list[tuple[int, str, str]], Any]:
    form = {"source": "en", "target": "fr"}
    files = {"file": (name, content.encode())}
    if glossary is not None:
        files["glossary"] = (glossary[0], glossary[1].encode())
    answer: Any = live.client.post("/translate_file", data=form, files=files).json()
    written = live.client.get(answer["translatedFileUrl"]).text
    rows = answer.get("unsure", [])
    reasons = [(one["line"], one["key"], one["reason"]) for one in rows]
    return written, reasons, answer.get("glossary")
