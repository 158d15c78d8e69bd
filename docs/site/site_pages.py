"""What the site has beyond its Markdown files: addresses, contents, commands, API, formulas.

Everything is made while the site is built, so that no file can fall behind the code.
"""

from __future__ import annotations

import contextlib
import io
import json
import posixpath
import re
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import sphinx.project
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

import pellucid
from pellucid.cli import main
from pellucid.cli.overview import NAMES
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.for_page import lessons_for

LIVE = "live.html"
LISTS = {"index": "docs", "lessons/index": "docs/lessons", "decisions/index": "docs/decisions"}
"""The pages that list others, with their folders."""

SENTENCE = "The pizza came out of the oven and it tasted good."
"""The sentence that the live page opens with."""


def address(path: PurePosixPath) -> str:
    """Return the place of a source on the site: docs/ is its top, docs/README.md its first page."""
    inside = path.relative_to("docs") if path.parts[0] == "docs" else path
    name = inside.stem.lower() if inside.stem.isupper() else inside.stem
    is_index = path.stem == "README" and len(path.parts) > 1
    return str(inside.with_name("index" if is_index else name))


class Project(sphinx.project.Project):
    """The sources, each with its address."""

    def path2doc(self, filename: Any) -> str | None:
        """Return the address of a source."""
        path = Path(filename)
        if path.is_absolute() and path.is_relative_to(self.srcdir):
            path = path.relative_to(self.srcdir)
        is_source = path.suffix in self.source_suffix and not path.is_absolute()
        return address(PurePosixPath(path)) if is_source else None


sphinx.project.Project.path2doc = Project.path2doc  # type: ignore[method-assign]


def contents(text: str, folder: str) -> str:
    """Add a hidden table of contents for each titled list of links, or for a folder's own pages."""
    titled = re.split(r"^\*\*(.+?)\*\*\n", text, flags=re.MULTILINE)[1:]
    groups = titled if folder == "docs" else ["", text]
    for title, part in zip(groups[::2], groups[1::2], strict=True):
        targets = list(dict.fromkeys(re.findall(r"\]\(([^):#]+\.(?:md|ipynb))\)", part)))
        if folder != "docs":
            targets = [target for target in targets if "/" not in target]
        paths = [posixpath.normpath(f"{folder}/{target}") for target in targets]
        places = "\n".join(f"/{address(PurePosixPath(path))}" for path in paths)
        caption = f":caption: {title}\n" if title else ""
        text += f"\n```{{toctree}}\n:hidden:\n{caption}\n{places}\n```\n"
    return text


def commands() -> str:
    """Write the help of every command, as a terminal shows it."""
    parts = []
    for name in NAMES:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            main.run(["help", *name.split()])
        parts.append(f"## {name}\n\n```text\n{shown.getvalue().strip()}\n```")
    return "\n\n".join(parts)


def described(match: re.Match[str]) -> str:
    """Turn a mark such as ``<!-- class pellucid.Translator -->`` into its documentation."""
    kind, name = match.groups()
    if kind == "data":
        # Its sentence stands where it is made; elsewhere Sphinx would take that of its type.
        module, _, last = name.rpartition(".")
        name = f"{import_module(module)._HOMES[last]}.{last}"
    options = "\n   :show-inheritance:" if kind == "exception" else ""
    if name == "pellucid.Translator":  # Some of its methods stand in its bases.
        options = "\n   :inherited-members: object"
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}{options}\n```"


def escape_bars(app: Sphinx, kind: str, name: str, found: Any, how: Any, lines: list[str]) -> None:
    """Keep ``|x|`` in a docstring from being read as a reference."""
    lines[:] = [re.sub(r"(``.*?``)|\|", lambda match: match[1] or r"\|", line) for line in lines]


def lesson(text: str, name: str) -> str:
    """Put the live page, at the right screen, below every statement of a lesson."""
    number = -1

    def add(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return match[0] + live(f"view=learn&amp;lesson={name}&amp;screen={number}", "../") + "\n\n"

    return re.sub(r"^## \d+\. .*\n\n", add, text, flags=re.MULTILINE)


def live(view: str, up: str = "") -> str:
    """Write the live page into a page; it loads when it is opened."""
    return (
        '<details class="live"><summary>Try it live</summary>'
        f'<iframe src="{up}{LIVE}#{view}" title="The live page" loading="lazy"></iframe></details>'
    )


def notebook(text: str) -> str:
    """Write a notebook as Markdown: its texts, its code, and what the code shows."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "text/html" in data:
                html = "".join(data["text/html"])
                parts.append(f"```{{raw}} html\n<div class='output'>{html}</div>\n```")
            else:
                parts.append(f"```text\n{''.join(data['text/plain'])}\n```")
    return "\n\n".join(parts)


def offer_files(app: Sphinx, docname: str, text: str) -> str:
    """Let readers download Markdown files that the site leaves out, such as logs."""

    folder = Path(app.env.doc2path(docname, base=False)).parent

    def offer(match: re.Match[str]) -> str:
        target = PurePosixPath(posixpath.normpath(folder / match[1]))
        is_left_out = address(target) not in app.env.found_docs
        is_left_out = is_left_out and (Path(app.srcdir) / target).exists()
        return f"](path:{match[1]})" if is_left_out else match[0]

    return re.sub(r"\]\(([^)\s:#]+\.md)(?:#[^)\s]*)?\)", offer, text)


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Complete a page before it is parsed."""
    text = source[0]
    if docname in LISTS:
        text = contents(text, LISTS[docname])
    elif docname in ("notebook", "course"):
        text = notebook(text)
    elif docname == "page":
        text = text.replace("<!-- live -->", live("view=translate"))
    elif docname.startswith("lessons/"):
        text = lesson(text, docname.removeprefix("lessons/"))
    text = text.replace("<!-- commands -->", commands() if "<!-- commands -->" in text else "")
    text = offer_files(app, docname, text)
    source[0] = re.sub(r"<!-- (class|function|exception|data) ([\w.]+) -->", described, text)


def name_levels(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give the headings of the table of contents a level, which screen readers need."""
    for part in ("furo_navigation_tree", "body"):
        if part in context:
            found = 'role="heading"'
            context[part] = context[part].replace(found, f'{found} aria-level="2"')


def write_live_page(app: Sphinx, problem: Exception | None) -> None:
    """Write the page in which the packaged model runs."""
    if problem is not None:
        return
    translator = pellucid.load("demo")
    lessons, _ = lessons_for(translator.bundle)
    trace = translator.look(SENTENCE, beam=1)
    # Without the duel's other models the site stays small.
    options: dict[str, Any] = {"lessons": lessons, "name": "demo", "has_others": False}
    html = model_page(translator.bundle, trace, SENTENCE, **options)
    (Path(app.outdir) / LIVE).write_text(html, encoding="utf-8")


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on its own line."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect all of it to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("html-page-context", name_levels, priority=900)
    app.connect("build-finished", write_live_page)
    return {"parallel_read_safe": True}
