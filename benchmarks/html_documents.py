"""Tags of generated HTML documents under translators that are no models, and time by size.

    python benchmarks/html_documents.py [--count 10000] [--seed 1]

Documents are menus, tables, nested and glued inline tags, footnotes, ruby text, forms, ``pre`` and
copied parts, in every order. Each is read and written with four translators: one copies, one
changes capitals, one reverses the words, one loses, doubles and shuffles words and links. Checks:
a copy is the document itself, every tag is there, none is nested wrongly, no link is in a link, and
the text without tags is that of the translator. Then documents of hostile shapes are doubled in
size: time must double, too. A document depends on its seed only. The tests take 200 documents.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from pellucid.documents.markup.lexing import cut_html
from pellucid.documents.markup.placing import place_tags
from pellucid.documents.markup.reading import read_segments, visible_text
from pellucid.documents.markup.segments import HTML, Segment, find_segments, spell
from pellucid.text.line_words import line_words

WORDS = [
    "the",
    "cat",
    "sees",
    "a",
    "red",
    "house",
    "and",
    "its",
    "old",
    "dog",
    "eats",
    "Paris",
    "city",
    "don't",
    "well-known",
    "été",
    "12",
    "3.5",
    "car",
]
SPACES = (" ", " ", " ", " ", "\n    ", "  ", "&nbsp;", "\r\n")
INLINE = ("b", "i", "em", "span", "u", "mark", "a", "font")
CODES = ("x", "a.b()", "--all", "{{name}}", "npm  install", "&lt;b&gt;", "cat", "%s:")


class Documents:
    """Makes documents.

    Args:
        seed: of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._links: list[bool] = []  # whether each open element is a link

    def document(self) -> str:
        """Make a document of a few blocks."""
        parts = [self._rng.choice(BLOCKS)(self) for _ in range(self._rng.randint(1, 4))]
        return self._rng.choice(("", "\n", "\n  ")).join(parts)

    def word(self) -> str:
        """Make a word with signs."""
        word = self._rng.choice(WORDS)
        shapes = ("{}", "{}", "{}", "{},", "{}.", "({})", "&quot;{}&quot;", "{}&amp;", "l'{}")
        return self._rng.choice(shapes).format(word)

    def inline(self, count: int | None = None) -> str:
        """Make words with tags in and around them."""
        parts = []
        for _ in range(count or self._rng.randint(1, 7)):
            kind = self._rng.choice(("word", "word", "word", "tag", "tag", "point", "copy", "mark"))
            parts.append(getattr(self, f"_{kind}", self.word)())
            is_glued = self._rng.random() < 0.1
            parts.append("" if is_glued else self._rng.choice(SPACES))
        return "".join(parts)

    def _attributes(self) -> str:
        return self._rng.choice(
            ("", "", ' class="x"', " id=n1", ' title="a red &quot;cat&quot;"', " TITLE='the dog'")
        )

    def _tag(self) -> str:
        if len(self._links) > 3:
            return self.word()
        name, attributes = self._rng.choice(INLINE), self._attributes()
        if name == "a" and any(self._links):
            name = "b"
        self._links.append(name == "a")
        inner = self.inline(self._rng.randint(1, 3)).rstrip(self._rng.choice((" \n", "")))
        self._links.pop()
        return f"<{name}{attributes}>{inner}</{name}>{self._rng.choice(('', '', 's', ','))}"

    def _point(self) -> str:
        return self._rng.choice(
            (
                "<i class=icon></i>", "<img src=a.png alt='a cat'>", "<wbr>", "<!-- note -->",
                "<svg><text>no</text></svg>", "<input placeholder='your name'>", "<b><i></i></b>",
                "<script>var a = '<b>';</script>", "<my-icon></my-icon>",
                f"<button>{self.word()} <b>{self.word()}</b></button>",
                "<select><option>one<option>two cats</select>", "<br>",
            )
        )  # fmt: skip

    def _copy(self) -> str:
        name = self._rng.choice(("code", "kbd", "samp", "span translate=no"))
        before, after = self._rng.choice(
            (("", ""), ("pre", ""), ("(", ")"), ("", "-end"), ("", "."))
        )
        return f"{before}<{name}>{self._rng.choice(CODES)}</{name.split()[0]}>{after}"

    def _mark(self) -> str:
        marks = ("<sup>®</sup>", "<sub>2</sub>", '<sup><a href="#1">[1]</a></sup>', "<sup>st</sup>")
        if any(self._links):
            marks = marks[:2]
        return self.word() + self._rng.choice(marks) + self._rng.choice(("", "O", ","))

    def paragraph(self) -> str:
        """Make a paragraph."""
        return f"<p>{self.inline()}{self._rng.choice(('', ' ', chr(10)))}</p>"

    def menu(self) -> str:
        """Make links that touch each other."""
        names = self._rng.choice((("a",), ("span",), ("a", "b")))
        gap = self._rng.choice(("", "", "\n"))
        links = []
        for number in range(self._rng.randint(2, 5)):
            text = f"{self._rng.choice(('', '<i class=icon></i>'))}{self.word()}"
            for name in reversed(names):
                text = f'<{name} data-n="{number}">{text}</{name}>'
            links.append(text)
        return f"<nav>{gap.join(links)}</nav>"

    def table(self) -> str:
        """Make a table."""
        cells = [self._rng.choice((self.inline, self.word, lambda: "12:30"))() for _ in range(4)]
        return "<table><tr>{}</tr>\n<tr>{}</tr></table>".format(
            "".join(f"<th>{one}</th>" for one in cells[:2]),
            "".join(f"<td>{one}</td>" for one in cells[2:]),
        )

    def ruby(self) -> str:
        """Make ruby text."""
        ruby = f"<ruby>cat<rp>(</rp><rt>kat{self._rng.choice(('</rt>', ''))}<rp>)</rp></ruby>"
        return f"<p>{self.inline(2)} {ruby} {self.word()}</p>"

    def form(self) -> str:
        """Make a form."""
        return (
            f"<form><label for=a>{self.inline(2)}</label><input id=a placeholder=name>"
            f"<textarea placeholder='the text'>left <b></textarea><button type=submit "
            f'title="{self.word().replace("&quot;", "")}">{self.word()}</button>'
            "<input type=submit value='send it'></form>"
        )

    def pre(self) -> str:
        """Make lines with columns."""
        lines = (f"{' ' * self._rng.randint(0, 6)}{self.inline(3)}" for _ in range(3))
        return "<pre>{}</pre>".format("\n".join(lines))

    def kept(self) -> str:
        """Make a part that is not translated, with one that is."""
        return (
            f'<div translate="no">{self.word()} <i title="kept">x</i> '
            f"<b translate=yes>{self.inline(2)}</b></div>"
        )

    def broken(self) -> str:
        """Make an inline element around breaks, which other elements touch."""
        return f"<p>{self.word()} <b>{self.inline(2)}<br>{self.inline(2)}</b> {self.inline(2)}</p>"

    def head(self) -> str:
        """Make the head of a page."""
        return (
            f'<head><title>{self.word()}</title>\n<meta name=description content="{self.word()}">'
            "<style>b { color: red }</style><!-- x --></head>"
        ).replace("&quot;", "")


BLOCKS: tuple[Callable[[Documents], str], ...] = (
    Documents.paragraph, Documents.paragraph, Documents.menu, Documents.table, Documents.ruby,
    Documents.form, Documents.pre, Documents.kept, Documents.broken, Documents.head,
)  # fmt: skip


@dataclass(frozen=True)
class Translated:
    """A text that no model has translated: the text, the words of both sides, and links."""

    text: str
    words: list[str]
    source_words: list[str]
    links: list[tuple[int, int]]


def copy(text: str, _: random.Random) -> Translated:
    """Copy a text."""
    words = line_words(text)
    return Translated(text, words, words, [(k, k) for k in range(len(words))])


def change_case(text: str, rng: random.Random) -> Translated:
    """Change small letters to capitals, and capitals to small letters."""
    same = copy(text, rng)
    swapped = "".join(one.swapcase() if len(one.swapcase()) == 1 else one for one in text)
    return Translated(swapped, line_words(swapped), same.words, same.links)


def reverse(text: str, _: random.Random) -> Translated:
    """Reverse the order of words."""
    words = line_words(text)
    links = [(k, len(words) - 1 - k) for k in range(len(words))]
    return Translated(" ".join(words[::-1]), words[::-1], words, links)


def lose(text: str, rng: random.Random) -> Translated:
    """Lose a third of the words, double a tenth, shuffle half of the links, and lose a fifth."""
    words = line_words(text)
    kept = [k for k in range(len(words)) for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 0, 0, 1, 2)))]
    links = [(k, place) for place, k in enumerate(kept) if rng.random() > 0.2]
    links = [(rng.randrange(len(words)) if rng.random() < 0.5 else k, p) for k, p in links]
    chosen = [words[k] for k in kept]
    return Translated(" ".join(chosen), chosen, words, links)


TRANSLATORS = (copy, change_case, reverse, lose)


def translate(
    document: str, translator: Callable[[str, random.Random], Translated], seed: int = 1
) -> tuple[str, list[tuple[Segment, str, str]]]:
    """Translate a document.

    Returns:
        The translated document, and each segment with the text that it should have and has.
    """
    rng = random.Random(seed)
    pieces = read_segments(document)
    found = []
    for segment in find_segments(pieces):
        if segment.is_blank:
            continue
        text = segment.text
        one = translator(text.strip(), rng)
        whole = text[: len(text) - len(text.lstrip())] + one.text + text[len(text.rstrip()) :]
        words = (
            (one.source_words, one.words, one.links)
            if segment.has_tags or segment.copies
            else ((), (), ())
        )
        segment.written = place_tags(segment, whole, *words)
        points = [replace(point, opening=()) for point in segment.points]
        shown = visible_text(place_tags(replace(segment, points=points), whole, *words))
        found.append((segment, plain(one.text), plain(shown)))
    return spell(pieces), found


def find_faults(
    document: str, answer: str, found: list[tuple[Segment, str, str]], *, is_lossy: bool = False
) -> list[str]:
    """List what is wrong with a translated document; a lost copy is added to the text."""
    faults = []
    before, after = tags_of(document), tags_of(answer)
    if before - after:
        faults.append(f"lost tags: {list(before - after)}")
    known = {re.sub(r"\sid=\w+", "", one) for one in before}
    if any(re.sub(r"\sid=\w+", "", one) not in known for one in after):
        faults.append("other tags")
    if is_nested(document) and not is_nested(answer):
        faults.append("nested wrongly")
    for segment, wanted, shown in found:
        copies = [
            plain(segment.text[e.start : e.end]) for e in segment.elements.values() if e.is_copy
        ]
        # Words in another order are not the copy any more.
        is_lost = bool(copies) if is_lossy else any(" " in one for one in copies)
        if segment.syntax is HTML and wanted != shown and not is_lost:
            faults.append(f"text {shown!r} for {wanted!r}")
    return faults


def plain(text: str) -> str:
    """Return a text without capitals, with single spaces."""
    return re.sub(r"[ \t\r\n\f]+", " ", text).strip().lower()


def tags_of(document: str) -> Counter[str]:
    """Count the tags, without what is translated in them."""
    labels = re.compile(
        r"""((?:title|alt|placeholder|value|content)=)("[^"]*"|'[^']*'|[^\s>]+)""", re.I
    )
    return Counter(labels.sub(r"\1", one.raw) for one in cut_html(document) if one.name)


def is_nested(document: str) -> bool:
    """Tell whether every end tag ends the last element that is open, and no link is in a link."""
    opened: list[str] = []
    for token in cut_html(document):
        if token.name in ("option", "rt"):  # They may leave out their end tags.
            continue
        if token.kind == "start":
            opened.append(token.name)
        is_wrong_end = token.kind == "end" and (not opened or opened.pop() != token.name)
        if is_wrong_end or opened.count("a") > 1:
            return False
    return not opened


SHAPES: dict[str, Callable[[int], str]] = {
    "<b>a</b>": lambda n: "<b>a</b>" * n,
    "x<b>a</b>": lambda n: "x<b>a</b>" * n,
    "<b>a</b> ": lambda n: "<b>a</b> " * n,
    "<code>a</code>": lambda n: "x <code>a</code>" * n,
    "<code>1</code>": lambda n: "".join(f"see <code>{k}</code> " for k in range(n)),
    "glued codes": lambda n: "".join(f"x<code>{k}</code>" for k in range(n)),
    "nested": lambda n: "<b>" * n + "a b" + "</b>" * n,
    "mixed nesting": lambda n: "<b><i>a " * n + "</i></b>" * n,
    "unclosed": lambda n: "<b>a " * n,
    "crossed": lambda n: "<b><i>a</b></i> " * n,
    "attributes": lambda n: "<a " + "title='a' x " * n + ">a b</a>",
    "quotes": lambda n: "<a ='" * n + ">",
    "<": lambda n: "a < b &" * n,
    "cut tags": lambda n: "<a " * n,
    "comments": lambda n: "<!-->a --!> b" * n,
    "images": lambda n: "a <img alt='b'> " * n,
    "empty": lambda n: "a <i></i> <b> </b>" * n,
    "buttons": lambda n: "a <button>b" * n + "</button>" * n,
    "no and yes": lambda n: "a <b translate=no>b <i translate=yes>c " * n + "</i></b>" * n,
    "ruby": lambda n: "a <ruby>b<rt>c<rt>d</ruby>" * n,
    "marks": lambda n: "a<sup>" * n + "2" + "</sup>" * n,
    "entities": lambda n: "&amp;&#11;&notit; " * n,
    "pre": lambda n: "<pre>" + "a\n" * n,
}
"""Documents on which careless programs take the square of their length."""


def seconds_of(document: str, translator: Callable[[str, random.Random], Translated]) -> float:
    """Measure reading and writing, without the translator's own time."""
    began = time.process_time()
    translate(document, translator)
    return time.process_time() - began


def main() -> None:
    """Check documents, then shapes, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="documents")
    parser.add_argument("--seed", type=int, default=1, help="the first document's; others follow")
    parser.add_argument("--size", type=int, default=2000, help="parts of a hostile shape")
    arguments = parser.parse_args()
    num_faults = 0
    print(f"{'translator':14} {'documents':>9} {'segments':>9} {'faults':>7} {'seconds':>8}")
    for translator in TRANSLATORS:
        began, faulty, segments = time.process_time(), 0, 0
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            document = Documents(seed).document()
            answer, found = translate(document, translator, seed)
            segments += len(found)
            faults = find_faults(document, answer, found, is_lossy=translator is lose)
            if translator is copy and answer != document:
                faults.append("not the document")
            if faults:
                faulty += 1
                print(f"seed {seed}: {faults}\n  {document!r}\n  {answer!r}")
        num_faults += faulty
        seconds = time.process_time() - began
        counts = f"{arguments.count:>9,} {segments:>9,} {faulty:>7,}"
        print(f"{translator.__name__:14} {counts} {seconds:>8.1f}")
    print(
        f"\n{'shape':16} {'characters':>10} {'seconds':>8} {'twice':>8} {'lossy':>8} {'twice':>8}"
    )
    for name, make in SHAPES.items():
        times = [
            seconds_of(make(size), translator)
            for translator in (copy, lose)
            for size in (arguments.size, 2 * arguments.size)
        ]
        print(f"{name:16} {len(make(arguments.size)):>10,}", *(f"{one:>8.3f}" for one in times))
        num_faults += times[1] > 3 * times[0] + 0.1 or times[3] > 3 * times[2] + 0.1
    sys.exit(f"{num_faults} faults" if num_faults else 0)


if __name__ == "__main__":
    main()
