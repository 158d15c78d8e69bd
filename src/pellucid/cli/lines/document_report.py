"""A report of the texts of a document that should be looked at: lines of JSON, or a page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.cli.lines.streams import check_target, to_json_line
from pellucid.cli.lines.text_counts import count_reasons
from pellucid.decode.constraints.term_reports import count_terms, join_counts
from pellucid.decode.constraints.terms import UsedTerm
from pellucid.documents.markup.segments import spell
from pellucid.files import endings, hash_bytes, write_text, writing
from pellucid.page.plain_page import html_page
from pellucid.terminal.text import count_of

if TYPE_CHECKING:
    from pellucid.documents.units import Unit
    from pellucid.translate.results import Translation

_STYLE = """
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; margin: 1rem 0; position: sticky; top: 0;
       background: var(--ground); padding: .5rem 0 }
input, select, button { font: inherit; color: inherit; background: var(--panel);
                        border: 1px solid var(--line); border-radius: .25rem; padding: .2rem .5rem }
article { border-top: 1px solid var(--line); padding: .75rem 0 } article.done { opacity: .45 }
article p { max-width: none; white-space: pre-wrap } article h2 { font-size: 1rem; margin: 0 }
select { max-width: min(22rem, 100vw - 2rem) }
.source::before { content: "Source: "; font-weight: 600 }
.translation::before { content: "Translation: "; font-weight: 600 }
.suggestion::before { content: "From the memory: "; font-weight: 600 }
.difference::before { content: "Its source, and what differs here: " }
del + ins { margin-left: .25em } article button { margin: .15rem 0 }
ul { margin: .25rem 0; padding-left: 1.25rem }
"""
_SCRIPT = """
const all = [...document.querySelectorAll("article")];
const [words, reason, open] = document.querySelectorAll("form [name]");
const place = "pellucid report " + document.querySelector("form").dataset.document;
// A browser may refuse to keep anything, as in a private window or for pages from a disk.
const attempt = (use, otherwise) => {
  try { return use(); } catch { document.querySelector("#refused").hidden = false; }
  return otherwise;
};
const kept = () => new Set(JSON.parse(localStorage.getItem(place) ?? "[]"));
const mark = (article, isDone) => {
  article.classList.toggle("done", isDone);
  article.querySelector("[name=done]").setAttribute("aria-pressed", isDone);
};
const before = attempt(kept, new Set());
for (const one of all) mark(one, before.has(one.dataset.name));
const show = () => {
  const asked = words.value.toLowerCase();
  let shown = 0;
  for (const one of all) {
    one.hidden = !one.textContent.toLowerCase().includes(asked)
      || (reason.value && !one.dataset.reasons.split("\\n").includes(reason.value))
      || (open.checked && one.classList.contains("done"));
    shown += !one.hidden;
  }
  document.querySelector("output").textContent = shown + " of " + all.length;
};
document.querySelector("form").addEventListener("input", show);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
document.querySelector("main").addEventListener("click", (event) => {
  const one = event.target.closest("article button");
  if (!one) return;
  const article = one.closest("article");
  if (one.name === "done") {
    const isDone = !article.classList.contains("done");
    mark(article, isDone);
    attempt(() => {
      // Read again: another window may have the same page.
      const names = kept();
      names[isDone ? "add" : "delete"](article.dataset.name);
      localStorage.setItem(place, JSON.stringify([...names]));
    });
    show();
    return;
  }
  const text = article.querySelector("." + one.name);
  const say = (words) => {
    one.textContent = words;
    setTimeout(() => { one.textContent = "Copy " + one.name; }, 1500);
  };
  // A browser may refuse, and has no clipboard for pages of a server without HTTPS.
  const copy = async () => navigator.clipboard.writeText(text.textContent);
  copy().then(() => say("Copied"), () => {
    getSelection().selectAllChildren(text);
    say("Selected: press Ctrl+C");
  });
});
show();
"""


_REFUSED = (
    "This browser keeps nothing for this page: what you mark as done is lost when the page is "
    "closed or loaded again."
)
_CHANGES = re.compile(r"\[-((?:(?!\[-).)*?)-\]|\{\+((?:(?!\{\+).)*?)\+\}", re.DOTALL)
_LETTERS = re.compile(r"\\.|[\W_]+")
_TERM_COLUMNS = ("Term", "Translation", "Hits", "Other forms", "Missing")


def record_unit(
    unit: Unit, number: int, found: str, translations: Sequence[Translation]
) -> dict[str, Any]:
    """Describe a text to look at, as a line of JSON has it.

    Args:
        unit: with its translations.
        number: of its row.
        found: what a memory has for it, which is a reason too; empty if it has nothing.
        translations: of the model.
    """
    # A text that is written for several plurals stands once.
    sources = dict.fromkeys(spell(one.pieces) for one in unit.segments)
    record: dict[str, Any] = {
        "row": number,
        "line": unit.line,
        "key": unit.key,
        "reason": unit.reason or found,
        "reasons": [*filter(None, (*unit.reasons, found))],
        "source": str(unit) if unit.fault else "\n".join(sources),
        "translation": str(unit) if unit.fault else "\n".join(map(str, unit.segments)),
    }
    if unit.context:
        record["context"] = unit.context
    if unit.comment:
        record["comment"] = unit.comment
    if middle := [[*one.best.middle] for one in translations if one.best.middle]:
        record["middle"] = middle
    return record


class Report:
    """A file with each text that should be looked at: lines of JSON, or a page for ``.html``.

    Until the end it is ``FILE.part``, from which an interrupted command resumes. That also has
    texts without a reason, whose terms of a glossary are counted at the end.

    Args:
        path: the file, which is also an attribute.
        may_overwrite: True if an existing one may be replaced.
    """

    def __init__(self, path: str, *, may_overwrite: bool) -> None:
        check_target(path, may_overwrite=may_overwrite)
        self.path = Path(path)
        self._part = Path(f"{path}.part")

    def begin(self, num_rows: int) -> Counter[str]:
        """Keep the remarks on rows that are written already, and count them."""
        kept: list[str] = []
        if num_rows and self._part.exists():
            lines = self._part.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [
                one for one in lines if one.endswith("\n") and json.loads(one)["row"] < num_rows
            ]
        write_text(self._part, "".join(kept))
        return count_reasons(json.loads(one)["reason"] for one in kept)

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines; it must come before the rows count as written."""
        with writing(self._part), self._part.open("a", encoding="utf-8") as stream:
            stream.writelines(map(to_json_line, records))

    def finish(self, document: str) -> None:
        """Give the file its name, or write the page.

        Args:
            document: the name of what was translated, for the page.
        """
        with writing(self.path):
            lines = self._part.read_text(encoding="utf-8").splitlines()
        save_report(self.path, document, [*map(json.loads, lines)])
        self._part.unlink(missing_ok=True)


def save_report(path: Path, document: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Write a report as a page or as lines of JSON, as its name says.

    Args:
        path: the file.
        document: the name of what was translated, for the page.
        records: of the texts to look at.
    """
    glossary = _count(records)
    records = [one for one in records if one.get("reason")]
    if endings(path).kind in (".html", ".htm"):
        text = report_page(document, records, glossary)
    else:
        counted = [{"glossary": glossary}] if glossary else []
        text = "".join(map(to_json_line, [*records, *counted]))
    write_text(path, text, follows_link=True)


def _count(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count the terms of texts, or add the counts of several files, which include their texts."""
    if counted := [row for one in records for row in one.get("glossary", ())]:
        return join_counts(counted)
    return count_terms(UsedTerm(**row) for one in records for row in one.get("terms", ()))


def report_page(
    document: str, records: Sequence[Mapping[str, Any]], glossary: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Make a page to work through: filters, source and translation, and buttons that copy them."""
    reasons = Counter(kind for one in records for kind in _kinds(one))
    choices = "".join(
        f'<option value="{escape(one)}">{escape(one)} ({count:,})</option>'
        for one, count in reasons.most_common()
    )
    form = (
        f'<form data-document="{escape(document)}">'
        '<label>Words <input name="words" type="search"></label>'
        f'<label>Reason <select name="reason"><option value="">all</option>{choices}</select>'
        '</label><label><input name="open" type="checkbox"> not done</label>'
        f'<output></output></form><p id="refused" role="status" hidden>{_REFUSED}</p>'
    )
    articles = map(_article, records)
    script = f"<script>{_SCRIPT}</script>"
    body = (*_term_table(glossary), form, *articles, script)
    title = f"{count_of(len(records), 'text')} to check in {document}"
    return html_page(title, *body, style=_STYLE)


def _term_table(glossary: Sequence[Mapping[str, Any]]) -> list[str]:
    """Make a table of the terms, closed at first, those that are missing most often on top."""
    from pellucid.decode.constraints.held_terms import UNWRITABLE

    if not glossary:
        return []
    short = {UNWRITABLE: "not in the model's vocabulary"}
    rows = []
    for one in sorted(glossary, key=lambda one: -sum(one["misses"].values())):
        forms = ", ".join(f"{form} ({n:,}×)" for form, n in one["forms"].items())
        misses = ", ".join(f"{n:,} × {short.get(why, why)}" for why, n in one["misses"].items())
        cells = (one["source"], one["target"], f"{one['hits']:,}", forms, misses)
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    head = "".join(f"<th>{name}</th>" for name in _TERM_COLUMNS)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    summary = f"<summary>{count_of(len(rows), 'term')} of the glossary</summary>"
    return [f"<details>{summary}<table><tr>{head}</tr>{body}</table></details>"]


def _kinds(record: Mapping[str, Any]) -> list[str]:
    """Take the parts of its reasons that texts share, each once."""
    return [*dict.fromkeys(one.split(":", 1)[0].split(" (", 1)[0] for one in record["reasons"])]


def _name(record: Mapping[str, Any]) -> str:
    """Name a text for what is done: one whose source or translation changed is another one."""
    names = (record.get("file"), record["key"] or record["row"])
    return hash_bytes(json.dumps((*names, record["source"], record["translation"])).encode())[:16]


def _heading(record: Mapping[str, Any]) -> str:
    """Give the place of a text, without a key that only repeats the text, as in PO."""
    place = f"line {record['line']}"
    if "file" in record:
        place = f"{escape(record['file'])}, {place}"
    key = record["key"].removeprefix(f"{record.get('context', '')}|")
    # Plurals follow the form that is the key.
    written = (record["source"], record["source"].split("\n", 1)[0])
    if _LETTERS.sub("", key) in (_LETTERS.sub("", one) for one in (*written, "")):
        return place[:1].upper() + place[1:] if "file" not in record else place
    return f"{escape(key)} <small>{place}</small>"


def _difference(text: str) -> str:
    """Show ``[-red-]{+blue+}`` as what is deleted and what is inserted."""
    parts = []
    for number, part in enumerate(_CHANGES.split(text)):
        tag = ("", "del", "ins")[number % 3]
        shown = escape(part or "")
        parts.append(f"<{tag}>{shown}</{tag}>" if tag and shown else shown)
    return "".join(parts)


def _article(record: Mapping[str, Any]) -> str:
    notes = {"Context": record.get("context"), "Comment": record.get("comment")}
    said = [f'<p class="note">{name}: {escape(one)}</p>' for name, one in notes.items() if one]
    reasons = "".join(f"<li>{escape(one)}</li>" for one in record["reasons"])
    kinds = "\n".join(_kinds(record))
    similar = record.get("memory", {})
    memory = button = ""
    if similar:
        memory = (
            f'<p class="suggestion">{escape(similar["translation"])}</p>'
            f'<p class="note difference">{_difference(similar["difference"])}</p>'
        )
        button = '<button name="suggestion">Copy suggestion</button> '
    return (
        f'<article data-name="{_name(record)}" data-reasons="{escape(kinds)}">'
        f'<h2>{_heading(record)}</h2><ul class="note">{reasons}</ul>{"".join(said)}'
        f'<p class="source">{escape(record["source"])}</p>'
        f'<p class="translation">{escape(record["translation"])}</p>{memory}'
        '<button name="source">Copy source</button> '
        f'<button name="translation">Copy translation</button> {button}'
        '<button name="done" aria-pressed="false">Done</button></article>'
    )
