"""Choose the sentences of Grow, in *Lessons*, from the built-in corpus.

    python web/grow_sentences.py

writes `web/src/grow/sentences.json`. They are drawn from the constructions of the corpus in which
*it* stands for a food or for a container, with few words, so that 200 sentences are enough.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from pellucid.corpora.example import Style, make_example
from pellucid.corpora.french import join_french_words
from pellucid.corpora.pronouns import FRAMES
from pellucid.corpora.sentence import Pick
from pellucid.machine.randomness import derive_key

FILE = Path(__file__).parent / "src" / "grow" / "sentences.json"
NUM_LEARNED, NUM_NEW = 200, 40
FOODS = "pizza|soup|tart|cake|bread|cheese"
CONTAINERS = "oven|fridge|cupboard|box|cooler"
SAID = "tasted good|was delicious|closed badly|was hard to open"
_FORM = re.compile(
    rf"the ({FOODS}) (came out of|was next to) the ({CONTAINERS}) and it ({SAID})"
    rf"|the ({CONTAINERS}) was next to the ({FOODS}) and it ({SAID})"
)
_WATCHED = re.compile(r"the (pizza|cake) came out of the oven and it (tasted good|closed badly)")
"""What the page watches: no model learns from these."""


def draw(seed: int = 1) -> Iterator[tuple[str, bool]]:
    """Draw pairs without end, and whether the page watches them; some come again and again."""
    pick = Pick(random.Random(derive_key(seed, "page grow")).random)
    while True:
        frame = FRAMES[pick.one(("subject pronoun, origin", "subject pronoun, place"))](pick)
        which = int(pick.chance(0.5))
        sentence = frame.complete(which, pick.one(frame.predicates[which]))
        english = " ".join(sentence.english)
        is_watched = bool(_WATCHED.fullmatch(english))
        if is_watched or _FORM.fullmatch(english):
            pair = make_example(sentence, join_french_words(sentence.french), Style(False, ""))
            yield f"{pair.source}|{pair.target}", is_watched


def choose(pairs: Iterator[tuple[str, bool]]) -> dict[str, list[str]]:
    """Choose the pairs to learn from, new ones to test with, and those that the page watches."""
    others: list[str] = []
    watched: set[str] = set()
    while len(others) < NUM_LEARNED + NUM_NEW or len(watched) < 4:
        written, is_watched = next(pairs)
        if is_watched:
            watched.add(written)
        elif written not in others:
            others.append(written)
    return {
        "learned": others[:NUM_LEARNED],
        "fresh": others[NUM_LEARNED:][:NUM_NEW],
        "watched": sorted(watched, key=lambda one: ("badly" in one, "cake" in one)),
    }


def to_text(chosen: dict[str, list[str]]) -> str:
    """Write the text of the file."""
    return json.dumps(chosen, ensure_ascii=False).replace("], ", "],\n") + "\n"


if __name__ == "__main__":
    FILE.write_text(to_text(choose(draw())), encoding="utf-8")
