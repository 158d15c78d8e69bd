"""The words that a translation leaves out: whether they are found, and whether the right ones are.

    python benchmarks/lost_words.py [--model demo] [--lines 3000] [--seed 2] [--out FILE]

Two questions about the warning "words may be missing", on sentences of the built-in corpus that are
drawn with another seed, and of a model with a head that was taught word links:

- ``translations``: the model translates. Of those that are the corpus's own, ``flagged`` ones are
  false; of the others some lack a word. Lines with ``DIFFERENT`` are flagged ones, to be read.
- ``damaged``: from the corpus's translation the counterpart of one word is taken out, as its gold
  links have it. ``flagged`` ones are right; in ``named`` ones that word is among those that are
  named, which ``words`` counts.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pellucid
from pellucid.corpora.splits import make_split
from pellucid.translate.attended_words import GivenPair, unlinked_words
from pellucid.translate.translator import Translator

MARKS = ".,!?"


def find_lost(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[tuple[str, ...]]:
    """List the words that each translation leaves out."""
    taught = translator.taught_links
    if taught is None:
        raise SystemExit("The model must have a head that was taught word links.")
    encode = translator.tokenizer.encode_source
    pairs = [
        GivenPair(one.source, encode(one.source), one.ids, one.token_log_probabilities)
        for one in translator.score(sources, targets)
    ]
    return unlinked_words(translator.attention_reader(), *taught, pairs)


def damage(examples: Sequence[tuple[str, str, Sequence[tuple[int, int]]]]) -> Iterator[list[str]]:
    """Take the counterpart of a word out of each translation, if that belongs to no other word.

    Yields:
        The source, the damaged translation, and the word.
    """
    rng = random.Random(1)
    for source, target, links in examples:
        words = source.split()
        # Elsewhere links do not count words between spaces.
        if set("',") & {*source, *target}:
            continue
        place = rng.randrange(len(words))
        own = {j for i, j in links if i == place}
        if own and not any(j in own and i != place for i, j in links):
            rest = [word for j, word in enumerate(target.split()) if j not in own]
            yield [source, " ".join(rest), words[place].strip(MARKS)]


def main() -> None:
    """Count flags of right translations, and of damaged ones."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", default="demo")
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    translator = pellucid.load(options.model)
    drawn = make_split("test", count=options.lines, seed=options.seed)
    examples = [(one.source, one.target, one.alignment) for one in drawn]
    counts = Counter[str]()
    found = translator.translate([one[0] for one in examples], beam=1)
    whole = [(one, pair) for one, pair in zip(found, examples, strict=True) if not one.best.parts]
    lost = find_lost(translator, [one.source for one, _ in whole], [one.text for one, _ in whole])
    for (one, pair), words in zip(whole, lost, strict=True):
        kind = "right" if one.text == pair[1] else "different"
        counts[kind] += 1
        counts[f"{kind}, flagged"] += bool(words)
        if words and kind == "different":
            print(f"DIFFERENT {one.source} | {one.text} | {' '.join(words)}")
    sources, targets, missing = zip(*damage(examples), strict=True)
    named = find_lost(translator, sources, targets)
    damaged = {
        "texts": len(sources),
        "flagged": sum(map(bool, named)),
        "named": sum(word in words for word, words in zip(missing, named, strict=True)),
        "words": sum(map(len, named)),
    }
    text = json.dumps({"translations": dict(sorted(counts.items())), "damaged": damaged}, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
