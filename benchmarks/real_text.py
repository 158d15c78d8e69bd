"""Real prose: what programs' help, manuals and messages teach, and how well they are translated.

    python benchmarks/real_text.py FOLDER [--minutes 120] [--target fr] [--build] [--out FILE]

Builds a text of English and French (or German) sentences from packages of Debian that anyone can
install: the help of LibreOffice (GPL 3 and MPL 2.0), whose paragraphs have the same ids in all
languages; manual pages (mostly GPL 2 and 3; the paragraphs of pages whose macros agree); and the
messages of the programs in `messages.py` and of LibreOffice (each with its program's license).
Nothing of it is in this repository. Whole files are held out: the help on Basic (``text/sbasic``),
20 manual pages and the messages of four programs. A held-out sentence is nowhere else.

Then `pellucid train` learns from the table as a user would, and the held-out sentences, one page of
help (HTML) and one catalogue (PO) are translated as documents: BLEU and chrF, placeholders and tags
that were kept, texts that the report names. What lies in FOLDER is not made again, so that a run
can be stopped at any time. --build stops before the training.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lxml.html
import polib
from messages import FOR_MEMORY, PACKAGES, fetch, messages, pellucid, placeholders, quality

HELP = "usr/share/libreoffice/help"
HELD_OUT_HELP = "text/sbasic"
NUM_HELD_OUT_PAGES = 20
LONGEST = 500
"""Characters of a side; longer paragraphs are mostly tables and listings."""

FONTS = {"B", "I", "BR", "RB", "BI", "IB", "IR", "RI", "SM", "SB"}
LISTINGS = {"nf": "fi", "EX": "EE", "TS": "TE"}
ONE_LINE = {"SH", "SS", "TP"}
"""Macros of a heading or a term, after which a paragraph begins by itself."""
SAME_MACRO = {"P": "PP", "LP": "PP"}
ESCAPES = {
    "-": "-", " ": "\N{NO-BREAK SPACE}", "&": "", "e": "\\", "|": "", "^": "", "/": "", ",": "",
    "(em": "—", "(en": "–", "(aq": "'", "(dq": '"', "(bu": "•", "(co": "©", "(ha": "^", "(ti": "~",
    "(lq": "“", "(rq": "”", "(oq": "‘", "(cq": "’", "(mu": "×", "(rs": "\\", "(Fo": "«", "(Fc": "»",
}  # fmt: skip

Pair = tuple[str, str]


def packages_of(target: str) -> list[str]:
    """List the packages with both languages, besides those of `messages.py`."""
    return [
        "libreoffice-help-en-us",
        f"libreoffice-help-{target}",
        f"libreoffice-l10n-{target}",
        "manpages",
        "manpages-dev",
        f"manpages-{target}",
        f"manpages-{target}-dev",
    ]


def read_help(folder: Path, target: str) -> Iterator[tuple[str, Pair]]:
    """Pair the paragraphs of the help that have the same id in the same file."""
    trees = [folder / "trees" / f"libreoffice-help-{code}" / HELP for code in ("en-us", target)]
    own = trees[0] / "en-US"
    for path in sorted(own.glob("text/**/*.html")):
        name = str(path.relative_to(own))
        other = trees[1] / target / name
        if not other.exists():
            continue
        sides = [paragraphs_of_help(one.read_bytes()) for one in (path, other)]
        for key, text in sides[0].items():
            if key in sides[1]:
                yield name, (text, sides[1][key])


def paragraphs_of_help(page: bytes) -> dict[str, str]:
    """Collect the text of every paragraph and heading by its id."""
    found = {}
    for one in lxml.html.fromstring(page).iter("p", "h1", "h2", "h3", "h4", "h5", "h6"):
        key = one.get("id")
        if key and not one.xpath(".//pre|.//code"):
            found[key] = " ".join(one.text_content().split())
    return found


def read_manuals(folder: Path, target: str) -> Iterator[tuple[str, Pair]]:
    """Pair the paragraphs of manual pages whose sequence of macros is the same."""
    for package in ("manpages", "manpages-dev"):
        own = folder / "trees" / package / "usr/share/man"
        for path in sorted(own.glob("man*/*.gz")):
            name = str(path.relative_to(own))
            for other in folder.glob(f"trees/manpages-{target}*/usr/share/man/{target}/{name}"):
                sides = [paragraphs_of_manual(one) for one in (path, other)]
                # Translators add a paragraph about themselves at the end.
                macros = [[macro for macro, _ in side[: len(sides[0])]] for side in sides]
                if macros[0] == macros[1]:
                    for (_, source), (_, translation) in zip(*sides, strict=False):
                        yield name, (source, translation)


def paragraphs_of_manual(path: Path) -> list[tuple[str, str]]:
    """Split a page at the macros that begin a paragraph: the macro, and the text after it."""
    found = [("", "")]
    until = ""
    for line in gzip.decompress(path.read_bytes()).decode("utf-8", "replace").splitlines():
        if line.startswith((".\\", "'\\")) or line.strip() == ".":
            continue
        macro, *words = re.findall(r'"[^"]*"|\S+', line[1:]) if line[:1] == "." else ("",)
        if until:
            until = "" if macro == until else until
        elif macro in LISTINGS:
            until = LISTINGS[macro]
            found.append((macro, ""))
        elif macro in FONTS:
            glue = "" if len(macro) == 2 and macro not in ("SM", "SB") else " "
            append(found, glue.join(word.strip('"') for word in words))
        elif macro:
            found.append((SAME_MACRO.get(macro, macro), " ".join(words).strip('"')))
        else:
            append(found, line)
    return [(macro, plain(text)) for macro, text in found]


def append(found: list[tuple[str, str]], text: str) -> None:
    """Add a line to the last paragraph."""
    macro, before = found[-1]
    if before and macro in ONE_LINE:
        found.append(("", text))
    else:
        found[-1] = (macro, f"{before} {text}")


def plain(text: str) -> str:
    """Remove fonts and escapes of roff."""
    text = re.sub(r"\\f(?:\[\w*\]|\(\w\w|\w)", "", text)
    text = re.sub(r"\\(\(\w\w|\S| )", lambda one: ESCAPES.get(one[1], ""), text)
    return " ".join(text.split(" ")).strip()


def read_messages(folder: Path, target: str) -> Iterator[tuple[str, Pair]]:
    """Pair the messages of programs, by the name of the program."""
    office = folder.glob(f"trees/libreoffice-l10n-{target}/**/LC_MESSAGES/*.mo")
    for path in [*fetch(folder, PACKAGES, target), *sorted(office)]:
        for entry in messages(path, folder):
            yield path.stem, (entry.msgid, entry.msgstr)


SOURCES = {"help": read_help, "manuals": read_manuals, "messages": read_messages}


def is_held_out(kind: str, name: str, pages: frozenset[str]) -> bool:
    """Say whether a whole file is kept from training."""
    if kind == "help":
        return name.startswith(HELD_OUT_HELP)
    return name in (pages if kind == "manuals" else FOR_MEMORY)


def is_text(pair: Pair) -> bool:
    """Say whether both sides hold words on one line, and are not merely copied."""
    has_words = all(re.search(r"[^\W\d_]{2}", side) for side in pair)
    is_line = all(side == side.strip() and "\n" not in side for side in pair)
    return has_words and is_line and pair[0] != pair[1] and max(map(len, pair)) <= LONGEST


def build(folder: Path, target: str) -> None:
    """Fetch the packages, and write the table and the held-out texts."""
    fetch(folder, " ".join(packages_of(target)), target)
    read = {kind: [*reader(folder, target)] for kind, reader in SOURCES.items()}
    names = {name for name, _ in read["manuals"]}
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    pages = frozenset(chosen[:NUM_HELD_OUT_PAGES])
    held_out: dict[str, dict[str, str]] = {kind: {} for kind in read}
    rest: dict[str, dict[Pair, None]] = {kind: {} for kind in read}
    for kind, rows in read.items():
        for name, pair in rows:
            if not is_text(pair):
                continue
            if is_held_out(kind, name, pages):
                held_out[kind].setdefault(*pair)
            else:
                rest[kind][pair] = None
    hidden = set().union(*held_out.values())
    with (folder / "train.tsv").open("w", encoding="utf-8") as table:
        for kind, pairs in rest.items():
            kept = [pair for pair in pairs if pair[0] not in hidden]
            table.writelines(f"{tabless(a)}\t{tabless(b)}\n" for a, b in kept)
            words = sum(len(source.split()) for source, _ in kept)
            print(f"{kind}: {len(kept):,} pairs, {words:,} English words", flush=True)
    for kind, known in held_out.items():
        write_lines(folder / f"{kind}.en", known)
        write_lines(folder / f"{kind}.{target}", known.values())
        print(f"{kind}: {len(known):,} sentences held out", flush=True)


def tabless(text: str) -> str:
    """Make a text a cell of a table that knows no quotation."""
    return text.replace("\t", " ")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write texts, one on a line."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def train(folder: Path, target: str, minutes: int) -> Path:
    """Train as a user would; a training that has ended ends at once."""
    languages = ("--source-language", "en", "--target-language", target)
    pellucid(
        "train", folder / "train.tsv", "--minutes", str(minutes), *languages, "-o", folder / "run"
    )
    return folder / "run" / "bundle"


def measure_lines(folder: Path, bundle: Path, kind: str, target: str) -> dict[str, Any]:
    """Translate held-out sentences, and compare them with their own translations."""
    made = folder / f"{kind}.made"
    if not made.exists():
        part = made.with_suffix(".part")
        pellucid("translate", bundle, "-i", folder / f"{kind}.en", "-o", part)
        part.replace(made)
    sides = [
        path.read_text(encoding="utf-8").splitlines()
        for path in (folder / f"{kind}.en", made, folder / f"{kind}.{target}")
    ]
    sources, hypotheses, references = sides
    kept = count_kept(sources, hypotheses)
    return {"sentences": len(sources), **quality(hypotheses, references), **kept}


def count_kept(sources: Sequence[str], hypotheses: Sequence[str]) -> dict[str, int]:
    """Count the sentences with placeholders, and those that kept all of them."""
    counts = Counter(dict.fromkeys(("with placeholders", "all kept"), 0))
    for source, hypothesis in zip(sources, hypotheses, strict=True):
        own = Counter(placeholders(source))
        counts["with placeholders"] += bool(own)
        counts["all kept"] += bool(own) and own == Counter(placeholders(hypothesis))
    return dict(counts)


def measure_documents(folder: Path, bundle: Path) -> dict[str, Any]:
    """Translate a page of help and a catalogue, and read what the reports say."""
    tree = folder / "trees" / "libreoffice-help-en-us" / HELP / "en-US" / HELD_OUT_HELP
    # The longest page has most kinds of markup.
    page = max(tree.rglob("*.html"), key=lambda path: path.stat().st_size)
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    texts = (folder / "messages.en").read_text(encoding="utf-8").splitlines()
    catalogue.extend(polib.POEntry(msgid=text) for text in texts)
    catalogue.save(str(folder / "messages.po"))
    found = {}
    for path in (page, folder / "messages.po"):
        made = folder / f"made-{path.name}"
        report = folder / f"{path.name}.jsonl"
        pellucid("translate", bundle, "-i", path, "-o", made, "--report", report)
        reasons = [json.loads(line)["reason"] for line in report.read_text().splitlines()]
        found[path.name] = {
            "to look at": len(reasons),
            "reasons": dict(Counter(re.sub(r": .*", "", reason) for reason in reasons)),
            "same tags": tags_of(path) == tags_of(made) if path.suffix == ".html" else None,
        }
    return found


def tags_of(path: Path) -> Counter[Any]:
    """Count the elements of a page with all their attributes but the language."""
    root = lxml.html.fromstring(path.read_bytes())
    return Counter(
        (one.tag, *sorted((k, v) for k, v in one.items() if k not in ("lang", "alt", "title")))
        for one in root.iter()
        if isinstance(one.tag, str)
    )


def main() -> None:
    """Fetch, train and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--target", choices=["fr", "de"], default="fr")
    parser.add_argument("--build", action="store_true", help="stop before the training")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder, target = options.folder, options.target
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "messages.en").exists():
        build(folder, target)
    if options.build:
        return
    bundle = train(folder, target, options.minutes)
    results = {
        "minutes": options.minutes,
        "target": target,
        "pairs": len((folder / "train.tsv").read_text(encoding="utf-8").splitlines()),
        "held out": {kind: measure_lines(folder, bundle, kind, target) for kind in SOURCES},
        "documents": measure_documents(folder, bundle),
    }
    text = json.dumps(results, indent=1, ensure_ascii=False)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
