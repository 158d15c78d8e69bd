"""Generated documents of every format under simple translators.

    python benchmarks/documents.py [--count 2000] [--segments 10000] [--hostile 200] [--seed 1]
        [--format NAME]… [--out FILE]

Documents hold dense markup: tags and placeholders that are glued to words, nested, at line ends and
next to no-break spaces. Each is read and written with five translators: one copies, one changes
capitals, one reverses the words, one loses, doubles and shuffles words and links, one writes signs
of markup only. Checks: a copy is the expected document byte by byte; read again, a document has the
same copied parts and the same units, and every segment that was translated has the codes of its
source. The copying translator gets so many documents of each format, the others documents until
they have so many segments. The share of segments that stay as source is printed. Then documents
with parts lost, doubled and replaced by signs of markup are copied: each is refused in a sentence,
or equal. --out adds the counts to a file. The tests take a few of each.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.segments import Segment, find_segments, spell
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.text.line_words import line_words

WORDS = (
    *("the", "cat", "sees", "a", "red", "house", "and", "its", "old", "dog", "eats", "Paris"),
    *("city", "don't", "well-known", "été", "12", "3.5", "car", "well", "naïve", "x"),
)
PLACEHOLDERS = ("%s", "%d", "%(name)s", "{}", "{0}", "{name}", "${x}", "%1$s", "{{x}}", "%5.2f")
SIGNS = ("*", "_x_", "[a](b)", "<b>", "1.", "#", "&", "|", '"', "\\", "'", "-", ":", "--", "%", "{")


@dataclass(frozen=True)
class Answer:
    """A translation with its word links."""

    text: str
    words: Sequence[str]
    alignment: Sequence[tuple[int, int]]


def copy(words: Sequence[str], text: str, rng: random.Random) -> Answer:
    """Leave the text as it is."""
    return Answer(text, words, [(k, k) for k in range(len(words))])


def change_case(words: Sequence[str], text: str, rng: random.Random) -> Answer:
    """Change capitals, in placeholders too."""
    changed = "".join(one.swapcase() if len(one.swapcase()) == 1 else one for one in text)
    return Answer(changed, line_words(changed), [(k, k) for k in range(len(words))])


def reverse(words: Sequence[str], text: str, rng: random.Random) -> Answer:
    """Reverse the order of words."""
    last = len(words) - 1
    return Answer(" ".join(words[::-1]), words[::-1], [(k, last - k) for k in range(len(words))])


def lose(words: Sequence[str], text: str, rng: random.Random) -> Answer:
    """Lose a third of the words, double a tenth, shuffle half of the links, and lose a fifth."""
    kept = [k for k in range(len(words)) for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 0, 0, 1, 2)))]
    links = [(k, place) for place, k in enumerate(kept) if rng.random() > 0.2]
    links = [(rng.randrange(len(words)) if rng.random() < 0.5 else k, p) for k, p in links]
    chosen = [words[k] for k in kept]
    return Answer(" ".join(chosen), chosen, links)


def write_signs(words: Sequence[str], text: str, rng: random.Random) -> Answer:
    """Write signs of markup in the place of words."""
    chosen = [rng.choice(SIGNS) for _ in words]
    return Answer(" ".join(chosen), chosen, [(k, k) for k in range(len(words))])


TRANSLATORS = (copy, change_case, reverse, lose, write_signs)
Translator = Callable[[Sequence[str], str, random.Random], Answer]


class Maker:
    """Makes documents.

    Args:
        seed: of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self, forms: Sequence[str], spaces: Sequence[str] = (" ",), codes: int = 3) -> str:
        """Make words with codes; a code may hold a word in the place of ``§``."""
        parts = []
        for _ in range(self.rng.randint(1, 7)):
            part = self.rng.choice(("{}", "{}", "{}", "{},", "{}.", "({})")).replace(
                "{}", self.rng.choice(WORDS)
            )
            if forms and self.rng.randrange(10) < codes:
                form = self.rng.choice(forms)
                glue = self.rng.choice(("", "", " ", " ", "\u00a0"))
                inner = self.rng.choice((part, f"{part} {self.rng.choice(WORDS)}"))
                part = form.replace("§", inner) + (glue + part if self.rng.random() < 0.5 else "")
            parts += [part, self.rng.choice(spaces)]
        return "".join(("the ", *parts[:-1]))

    def make(self, name: str) -> tuple[str, str]:
        """Make a document, and what a copying translator makes of it."""
        made = getattr(self, f"_{name}")
        units = [made(k) for k in range(self.rng.randint(1, 6))]
        start, end = FRAMES.get(name, ("", ""))
        newline = self.rng.choice(("\n", "\n", "\r\n"))
        pair = [start + "".join(one[side] for one in units) + end for side in (0, 1)]
        return pair[0].replace("\n", newline), pair[1].replace("\n", newline)

    def _po(self, number: int) -> tuple[str, str]:
        own = self.text(
            (*PLACEHOLDERS, "<b>§</b>", '\\"', "\\n", '"\n"', "\\t"), (" ", "  ", ' "\n"')
        )
        head = self.rng.choice(("", "# note\n", "#, c-format\n", "#: a.c:1\n#, c-format\n"))
        entry = f'{head}msgctxt "{number}"\nmsgid "{own}"\nmsgstr "'
        return f'{entry}"\n\n', f'{entry}{own}"\n\n'

    def _xliff(self, number: int) -> tuple[str, str]:
        forms = (
            *PLACEHOLDERS,
            '<g id="1">§</g>',
            '<x id="2"/>',
            '<ph id="3">%s</ph>',
            "&amp;",
            "&lt;b&gt;",
        )
        own = self.text(forms, (" ", "\n  "))
        entry = f'<trans-unit id="{number}">\n  <source>{own}</source>'
        after = "\n</trans-unit>\n"
        return entry + after, f'{entry}\n  <target state="translated">{own}</target>{after}'

    def _tmx(self, number: int) -> tuple[str, str]:
        forms = (
            *PLACEHOLDERS,
            '<bpt i="1">&lt;b></bpt>§<ept i="1">&lt;/b></ept>',
            "<ph/>",
            "&amp;",
        )
        own = self.text(forms)
        entry = f'<tu>\n<tuv xml:lang="en"><seg>{own}</seg></tuv>'
        return f"{entry}\n</tu>\n", f'{entry}\n<tuv xml:lang="fr"><seg>{own}</seg></tuv>\n</tu>\n'

    def _same(self, document: str) -> tuple[str, str]:
        return document, document

    def _android(self, number: int) -> tuple[str, str]:
        forms = (*PLACEHOLDERS, "<b>§</b>", "\\'", "\\n", "&amp;", '<xliff:g id="a">%s</xliff:g>')
        own = self.text(forms, (" ", "\n   ")).replace("don't", "don\\'t")
        return self._same(f'<string name="n{number}">{own}</string>\n')

    def _resx(self, number: int) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, "&lt;b&gt;§&lt;/b&gt;", "&amp;", "\n", "> "))
        return self._same(f'<data name="n{number}"><value>{own}</value></data>\n')

    def _qt(self, number: int) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, "&lt;b&gt;§&lt;/b&gt;", "&amp;", "%n", "%1"))
        entry = f"<message><source>{own}</source><translation"
        after = "</translation></message>\n"
        return f'{entry} type="unfinished">{after}', f"{entry}>{own}{after}"

    def _fluent(self, number: int) -> tuple[str, str]:
        forms = ("{ $x }", "{ -brand }", "<b>§</b>", "%s")
        own = self.text(forms, (" ", "\n    "))
        # Of a plural French would get a form more.
        variants = f"{{ $n ->\n    [0] {self.text(forms)}\n   *[other] {self.text(forms)}\n}}"
        return self._same(f"k{number} = {self.rng.choice((own, variants))}\n")

    def _srt(self, number: int, web: bool = False) -> tuple[str, str]:
        forms = (
            "<i>§</i>",
            "{\\an8}",
            '<font color="x">§</font>',
            "<b>",
            *(["&amp;"] if web else []),
        )
        own = self.text(forms, (" ", " ", "\n"))
        mark = "." if web else ","
        time = f"00:00:{number:02d}{mark}000 --> 00:00:{number:02d}{mark}900"
        return self._same(f"{number + 1}\n{time}\n{own}{self.rng.choice(('', '.'))}\n\n")

    def _vtt(self, number: int) -> tuple[str, str]:
        return self._srt(number, web=True)

    def _markdown(self, number: int) -> tuple[str, str]:
        forms = ("*§*", "**§**", "`x y`", "`%s`", '[§](http://a.b "t")', "![§](i.png)", "<b>§</b>")
        forms += ("\\*", "&eacute;", "~~§~~", "[^1]", "<http://a.b>", *PLACEHOLDERS)
        kind = self.rng.choice(("", "# ", "- ", "1. ", "> ", "| ", "- [ ] ", "<p>", "```"))
        if kind == "| ":
            cells = [self.text(forms).replace("|", "") for _ in range(2)]
            return self._same(f"| {cells[0]} | {cells[1]} |\n|---|---|\n| {cells[1]} | a |\n\n")
        if kind in ("<p>", "```"):
            return self._same(
                f"<p>{self.text(())}</p>\n\n" if kind == "<p>" else "```\nthe cat\n```\n\n"
            )
        spaces = {"": (" ", "\n"), "- ": (" ", "\n  "), "> ": (" ", "\n> ", "  \n> ")}
        return self._same(f"{kind}{self.text(forms, spaces.get(kind, (' ',)))}\n\n")

    def _html(self, number: int) -> tuple[str, str]:
        own = self.text(("<b>§</b>", "<code>x</code>", "<br>", "&amp;", "<a href=x>§</a>"))
        return self._same(f"<p>{own}</p>\n")

    def _json(self, number: int) -> tuple[str, str]:
        own = self.text(
            (*PLACEHOLDERS, '\\"', "\\n", "<b>§</b>", "\\u00e9", "\\ud83d\\ude00", "\\/")
        )
        return self._same(f'  "k{number}": "{own}",\n')

    def _xcstrings(self, number: int) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, '\\"', "\\n", "<b>§</b>", "%@", "%lld", "%#@dogs@"))
        form = f'"stringUnit" : {{ "state" : "translated", "value" : "{own}" }}'
        if self.rng.random() < 0.3:
            two = f'"one" : {{ {form} }}, "other" : {{ {form} }}'
            model = f'"variations" : {{ "plural" : {{ {two} }} }}'
            # French has a form for millions.
            made = model.replace(two, f'{two}, "many" : {{ {form} }}')
        else:
            model = made = form
        before = f'    "k{number}" : {{\n      "localizations" : {{\n        "en" : {{ {model} }}'
        after = "\n      }\n    },\n"
        return f"{before}{after}", f'{before},\n        "fr" : {{ {made} }}{after}'

    def _yaml(self, number: int) -> tuple[str, str]:
        plain = self.text(("<b>§</b>", "%s", "{x}"), (" ", "\n    "))
        double = self.text((*PLACEHOLDERS, '\\"', "\\n"), (" ", "\n    "))
        single = self.text((*PLACEHOLDERS, "''"), (" ",)).replace("don't", "don''t")
        block = self.text(PLACEHOLDERS, (" ", "\n    "))
        kinds = (f"a {plain}", f'"{double}"', f"'{single}'", f"|\n    {block}", f">-\n    {block}")
        return self._same(f"  k{number}: {self.rng.choice(kinds)}\n")

    def _properties(self, number: int) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, "\\n", "\\u00e9", "\\:", "<b>§</b>"), (" ", " \\\n    "))
        return self._same(f"k{number}{self.rng.choice(('=', ' = ', ': '))}{own}\n")

    def _strings(self, number: int) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, '\\"', "\\n", "%@"))
        return self._same(f'/* {number} */\n"k{number}" = "{own}";\n')

    def _csv(self, number: int, separator: str = ",") -> tuple[str, str]:
        plain = self.text(PLACEHOLDERS).replace(",", "")
        breaks = ("\n",) if separator == "," else ()  # A cell of a TSV has one line.
        quoted = self.text((*PLACEHOLDERS, '""', *breaks, "<b>§</b>"))
        cell = self.rng.choice((plain, f'"{quoted}"'))
        return self._same(f"{number}{separator}{cell}\n")

    def _tsv(self, number: int) -> tuple[str, str]:
        return self._csv(number, "\t")

    def _runs(self, paragraph: str, run: str, forms: Sequence[str]) -> tuple[str, str]:
        own = self.text((*PLACEHOLDERS, "&amp;", "&lt;b&gt;", *forms))
        # A form ends the run before it, and begins the one after it.
        return self._same(paragraph.format(run.replace("§", own)))

    def _docx(self, number: int) -> tuple[str, str]:
        start, end = '<w:r><w:t xml:space="preserve">', "</w:t></w:r>"
        bold = f"{end}<w:r><w:rPr><w:b/></w:rPr><w:t>§{end}{start}"
        field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
        forms = (
            bold,
            f'{end}<w:hyperlink r:id="r">{start}§{end}</w:hyperlink>{start}',
            "</w:t><w:br/><w:t>",
            f'{end}<w:bookmarkStart w:id="1"/>{start}',
            f"{end}{field('begin')}<w:r><w:instrText>PAGE</w:instrText></w:r>"
            f"{field('separate')}{start}3{end}{field('end')}{start}",
            f'{end}{field("begin")}<w:r><w:instrText>HYPERLINK "x"</w:instrText></w:r>'
            f"{field('separate')}{start}§{end}{field('end')}{start}",
        )
        return self._runs("<w:p><w:pPr/>{}</w:p>\n", f"{start}§{end}", forms)

    def _pptx(self, number: int) -> tuple[str, str]:
        start, end = "<a:r><a:t>", "</a:t></a:r>"
        bold = f'{end}<a:r><a:rPr b="1"/><a:t>§{end}{start}'
        field = f'{end}<a:fld type="slidenum"><a:t>3</a:t></a:fld>{start}'
        forms = (bold, field, f"{end}<a:br/>{start}")
        return self._runs("<a:p>{}</a:p>\n", f"{start}§{end}", forms)

    def _xlsx(self, number: int) -> tuple[str, str]:
        if self.rng.random() < 0.5:
            return self._runs("<si><t>{}</t></si>\n", "§", ("\n",))
        bold = "</t></r><r><rPr><b/></rPr><t>§</t></r><r><t>"
        return self._runs("<si>{}</si>\n", "<r><t>§</t></r>", (bold, "\n"))

    def _odt(self, number: int) -> tuple[str, str]:
        forms = (
            '<text:span text:style-name="b">§</text:span>',
            '<text:a xlink:href="x">§</text:a>',
            "<text:s/>",
            "<text:line-break/>",
            "<text:page-number>3</text:page-number>",
            "<text:note><text:note-body><text:p>the cat</text:p></text:note-body></text:note>",
        )
        return self._runs("<text:p>{}</text:p>\n", "§", forms)

    _odp = _ods = _odt

    def _epub(self, number: int) -> tuple[str, str]:
        return self._html(number)


FRAMES = {
    "xliff": (
        '<xliff version="1.2"><file source-language="en" target-language="fr"><body>\n',
        "</body></file></xliff>\n",
    ),
    "tmx": ('<tmx version="1.4"><header/><body>\n', "</body></tmx>\n"),
    "android": ('<resources xmlns:xliff="u">\n', "</resources>\n"),
    "resx": ("<root>\n", "</root>\n"),
    "vtt": ("WEBVTT\n\nNOTE\nThe cat\n\n", ""),
    "qt": ('<TS version="2.1"><context><name>a</name>\n', "</context></TS>\n"),
    "fluent": ("# the cat\n-brand = the cat\n", ""),
    "markdown": ("---\nlayout: the cat\n---\n\n", ""),
    "json": ("{\n", '  "@k": {"x": "the cat"}\n}\n'),
    "xcstrings": (
        '{ "sourceLanguage" : "en",\n  "strings" : {\n',
        '    "" : {}\n  },\n  "version" : "1.0"\n}\n',
    ),
    "yaml": ("texts:\n", ""),
    "csv": ("id,text\n", ""),
    "tsv": ("id\ttext\n", ""),
    "docx": ("\x1ea\n<w:document xmlns:w='w' xmlns:r='r'>", "</w:document>"),
    "pptx": ("\x1ea\n<p:sld xmlns:p='p' xmlns:a='a'>", "</p:sld>"),
    "xlsx": ("\x1ea\n<sst>", "</sst>"),
    **dict.fromkeys(
        ("odt", "odp", "ods"),
        (
            "\x1ea\n<o:document-content xmlns:o='o' xmlns:text='t' xmlns:xlink='x'>",
            "</o:document-content>",
        ),
    ),
    "epub": ("\x1ea\n<html>", "</html>"),
}
HOW = How(languages=("en", "fr"))
GROWING = ("po", "xliff", "tmx", "qt", "xcstrings")
"""Formats in which a translation adds marks or targets."""


def translate(
    name: str, document: str, translator: Translator, seed: int = 1
) -> tuple[str, list[Segment]]:
    """Translate a document; return also its segments."""
    rng = random.Random(seed)
    parts = list(FORMATS[name].read(document, HOW))
    found = []
    for unit in parts:
        for segment in unit.segments if isinstance(unit, Unit) else ():
            text = segment.text.strip()
            words = line_words(text)
            write_segment(segment, [translator(words, text, rng)], words)
            found.append(segment)
    return "".join(map(str, parts)), found


def skeleton(name: str, document: str) -> list[str]:
    """List what is copied in a document, and for each unit its kinds of parts."""
    found = []
    if name in ("srt", "vtt"):  # Sentences may end elsewhere, cues may not.
        return [line for line in document.split("\n") if "-->" in line]
    # Runs that are formatted alike are joined.
    if (
        name in ("yaml", "csv", "tsv") or FORMATS[name].is_zip
    ):  # A text may need quotes that its source did not need.
        return [one.key for one in FORMATS[name].read(document, HOW) if isinstance(one, Unit)]
    for part in FORMATS[name].read(document, HOW):
        if isinstance(part, str):
            found.append(part)
        else:
            found += [
                one if isinstance(one, str) and "\n" not in one else "§" for one in part.pieces
            ]
    return found


def find_faults(name: str, document: str, answer: str, segments: Sequence[Segment]) -> list[str]:
    """List what is wrong with a translated document."""
    faults = []
    is_copied = name not in GROWING
    if is_copied and skeleton(name, document) != skeleton(name, answer):
        faults.append("other copied parts")
    elif not is_copied and any(isinstance(one, Unit) for one in FORMATS[name].read(answer, HOW)):
        faults.append("not all units have a translation")
    if FORMATS[name].is_zip:
        # Links may be closed and opened again; empty runs are left out.
        kinds = re.compile(r"<(?:w:(?:bookmarkStart|br)|a:(?:fld|br)|text:(?:note|line-break))\b")
        if Counter(kinds.findall(answer)) != Counter(kinds.findall(document)):
            faults.append("other parts without text")
        rest = "".join(html.unescape(re.sub("<[^>]*>", "", answer)).split())
        lost = [one for s in segments for one in s.copies if "".join(one.split()) not in rest]
        return faults + [f"lost {one}" for one in lost]
    for segment in segments:
        if segment.written is None:
            continue
        codes = Counter(
            "".join(spell(one.opening).split())
            for one in (*segment.points, *(e for e in segment.elements.values() if e.is_copy))
        )
        rest = "".join(segment.written.split())
        lost = [one for one, count in codes.items() if one and rest.count(one) < count]
        lost += [
            one.opening
            for one in segment.elements.values()
            if "".join(spell(one.opening).split()) not in rest
        ]
        if lost and not list(find_segments([p for o in segment.points for p in o.opening])):
            faults.append(f"lost {lost} in {segment.written!r}")
    return faults


def check(name: str, translator: Translator, seeds: Iterable[int], most: int) -> dict[str, int]:
    """Check documents, until enough segments are translated; print the first faults."""
    counts = {"documents": 0, "segments": 0, "stayed": 0, "faulty": 0}
    for seed in seeds:
        document, expected = Maker(seed).make(name)
        answer, segments = translate(name, document, translator, seed)
        faults = find_faults(name, document, answer, segments)
        if translator is copy and answer != expected:
            faults.append("the copy is not equal")
        if faults and counts["faulty"] < 3:
            print(f"{seed}: {faults[:2]}\n{document}\n{answer}", file=sys.stderr)
        counts["documents"] += 1
        counts["segments"] += len(segments)
        counts["stayed"] += sum(one.written is None for one in segments)
        counts["faulty"] += bool(faults)
        if counts["segments"] >= most and translator is not copy:
            break
    return counts


SIGNS_OF_MARKUP = "<>&\"'{}[]()#-*_|`\\:;=%$!?@,.\t\n\r \x00\u2028é🐈"


def damage(document: str, rng: random.Random) -> str:
    """Lose, double and replace parts of a document."""
    for _ in range(rng.choice((1, 3, 10, 40))):
        start = rng.randrange(len(document) + 1)
        end = start + rng.randint(0, 30)
        signs = rng.choice(SIGNS_OF_MARKUP) * rng.choice((0, 1, 1, 50))
        again = document[rng.randrange(len(document) + 1) :][: rng.choice((0, 200))]
        document = f"{document[:start]}{signs}{again}{document[end:]}"
    return document


def check_hostile(name: str, seeds: Iterable[int]) -> dict[str, int]:
    """Copy damaged documents: how many are refused, and how many are neither refused nor equal."""
    found = Counter(documents=0, refused=0, faulty=0)
    for seed in seeds:
        document = damage(Maker(seed).make(name)[0], random.Random(seed))
        found["documents"] += 1
        try:
            answer, _ = translate(name, document, copy)
        except DataError as error:
            found["refused"] += 1
            found["faulty"] += "\n" in str(error)
        else:
            # A lone < may become &lt;, and a reference without its semicolon get it.
            is_equal = html.unescape(answer) == html.unescape(document)
            found["faulty"] += name not in GROWING and not is_equal
    return dict(found)


def main() -> int:
    """Make and check documents; print a line for each format and translator."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--hostile", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=FORMATS, default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = {}
    for name in options.format or FORMATS:
        results[name] = {}
        for translator in TRANSLATORS:
            last = options.seed + options.count * (1 if translator is copy else 10)
            found = check(name, translator, range(options.seed, last), options.segments)
            results[name][translator.__name__] = found
            share = found["stayed"] / max(1, found["segments"])
            print(
                f"{name:12} {translator.__name__:12} {found['segments']:7,} segments, {share:6.1%} "
                f"stay as source, {found['faulty']:,} of {found['documents']:,} documents with "
                "faults",
                flush=True,
            )
        hostile = check_hostile(name, range(options.seed, options.seed + options.hostile))
        results[name]["damaged"] = hostile
        print(f"{name:12} damaged: {hostile}", flush=True)
        if options.out is not None:
            known = json.loads(options.out.read_text()) if options.out.exists() else {}
            options.out.write_text(json.dumps(known | results, indent=1) + "\n")
    return int(any(one["faulty"] for of in results.values() for one in of.values()))


if __name__ == "__main__":
    sys.exit(main())
