"""Write the first section of start.md: a sentence that the packaged model gets wrong, and why.

    python docs/make_wrong_story.py [--list] [--line "English = French"]

Which sentences those are is an accident of the model. Those of `tests/golden/` are tried, first the
other predicates of ``neighbors.txt``: one is told that is wrong in one word, and of which
`pellucid why` names one word that the model wrote it because of. ``--list`` shows all that could
be told, and writes nothing; ``--line`` tells another. What the commands of the section print is
written by docs/make_printed.py afterwards.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pellucid
from pellucid.errors import PellucidError
from pellucid.translate.translator import Translator

ROOT = Path(__file__).parents[1]
START, END = "## A model that is wrong with confidence\n", "## Your own text\n"
NAMES = ("neighbors.txt", "own_sentences.txt", "harder_sentences.txt")
SECTION = """\
{start}
The packaged model writes fluent French. Here it writes *{word}*, where *{rival}* is right:

```console
$ echo "{source}" | pellucid translate demo
{written}
```

{asks}

```console
$ pellucid why demo "{source}" {word} --not {rival}
?
```

{answers}

"""
ASKS = (
    "There is a warning only if the model itself doubts a word. One command says why it wrote "
    "*{word}* and not *{rival}*. It hides each English word in turn, and translates again:"
)
ANSWERS = (
    "So {because} weighs too much here. A word that speaks for *{rival}* has a ×: without it the "
    "odds of *{word}* rise. Of 100 sentences with another predicate the model keeps the meaning of "
    "{plain}, and of {stopped} if they end in a full stop."
)


@dataclass(frozen=True)
class Story:
    """A sentence, what the model writes, what is right, and the word that is wrong."""

    source: str
    written: str
    right: str
    word: str
    rival: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        because = f"{self.word}, not {self.rival}, because of {', '.join(self.reasons)}"
        return f"{self.source} = {self.right}\n  {self.written}\n  {because}"


def predicates() -> list[str]:
    """Read the sentences with an exchanged predicate."""
    text = (ROOT / "tests" / "golden" / "neighbors.txt").read_text(encoding="utf-8")
    lines = text.partition("other predicates\n")[2].splitlines()
    return [line for line in lines if not line.startswith("#")]


def lines_to_try() -> Iterator[str]:
    """Yield English sentences and the French that is right, the plainest first."""
    for line in predicates():
        source, _, target = line.partition(" = ")
        yield f"{source}. = {target}."
    for name in NAMES:
        yield from (ROOT / "tests" / "golden" / name).read_text(encoding="utf-8").splitlines()


def find_stories(translator: Translator, lines: Iterable[str]) -> Iterator[Story]:
    """Yield what could be told of those with one right translation."""
    pairs = [line.split(" = ") for line in lines if " = " in line and " / " not in line]
    found = translator.translate([source for source, _ in pairs])
    for (source, right), translation in zip(pairs, found, strict=True):
        written = translation.text.replace("\u202f", " ")
        differing = [
            two
            for two in zip(written.split(), right.split(), strict=False)
            if two[0].strip(".") != two[1].strip(".")
        ]
        # One word is wrong, and perhaps another that agrees with it.
        is_same_length = len(written.split()) == len(right.split())
        if not is_same_length or not 0 < len(differing) < 3 or "<unk>" in written:
            continue
        word, rival = (one.strip(".") for one in differing[0])
        try:
            reasons = translator.why(source, word, other=rival).reasons
        except PellucidError:
            continue  # such as a rival that the vocabulary lacks
        if reasons:
            because = tuple(one.word for one in reasons)
            yield Story(source, translation.text, right, word, rival, because)


def count_kept(translator: Translator, end: str) -> int:
    """Count the sentences with an exchanged predicate that are right with an end."""
    pairs = [line.split(" = ") for line in predicates()]
    found = translator.translate([source + end for source, _ in pairs])
    return sum(
        one.text.removesuffix(end) in right.split(" / ")
        for (_, right), one in zip(pairs, found, strict=True)
    )


def tell(story: Story, *, plain: int, stopped: int) -> str:
    """Return the section.

    Args:
        story: what it tells.
        plain: of 100 sentences with another predicate, those that are right.
        stopped: the same with a full stop.
    """
    because = " and ".join(f"*{one}*" for one in story.reasons)
    known = {**vars(story), "because": because, "plain": plain, "stopped": stopped}
    asks, answers = (textwrap.fill(text.format(**known), 125) for text in (ASKS, ANSWERS))
    return SECTION.format(**known, start=START, asks=asks, answers=answers)


def main() -> None:
    """Find a story and write it, or list all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show all, and write nothing")
    parser.add_argument("--line", help="tell this one")
    options = parser.parse_args()
    translator = pellucid.load("demo")
    found = []
    for story in find_stories(translator, [options.line] if options.line else lines_to_try()):
        print(story)
        found.append(story)
        if len(story.reasons) == 1 and not options.list:
            break
    if not found:
        print("No sentence is wrong in one word for a reason: the section stays as it is.")
    if options.list or not found:
        return
    kept = {name: count_kept(translator, end) for name, end in (("plain", ""), ("stopped", "."))}
    page = ROOT / "docs" / "start.md"
    begin, _, rest = page.read_text(encoding="utf-8").partition(START)
    end = rest.partition(END)[2]
    page.write_text(begin + tell(found[-1], **kept) + END + end, encoding="utf-8")


if __name__ == "__main__":
    main()
