"""Snippets of HTML around sentences of the packaged model, made by a fixed rule.

They are written so that they are also XML: a strict parser can then judge what comes back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

SENTENCES = (
    "The dog ate it.",
    "The cat sees the red house.",
    "A red house is big.",
    "The boy sees the small house.",
    "The pizza came out of the oven and it tasted good.",
    "The small dog sees the cat and the cat sees the dog.",
    "The woman gives the book to the man.",
    "I see the big house.",
    "She eats an apple.",
    "The cat sleeps.",
)
INLINE = ("b", "i", "em", "strong", "span", "u", "mark", "small", "a")


@dataclass(frozen=True)
class Snippet:
    """A snippet.

    Attributes:
        source: the HTML.
        kind: its shape.
    """

    source: str
    kind: str


def make_snippets(count: int, *, seed: int = 1) -> Iterator[Snippet]:
    """Make snippets of all kinds in turn."""
    rng = random.Random(seed)
    makers = (
        _flat, _nested, _table, _breaks, _entities, _untouched, _list, _points, _mixed, _whole
    )  # fmt: skip
    for number in range(count):
        maker = makers[number % len(makers)]
        yield Snippet(maker(rng), maker.__name__[1:])


def _sentence(rng: random.Random) -> str:
    return rng.choice(SENTENCES)


def _tag(rng: random.Random) -> tuple[str, str]:
    name = rng.choice(INLINE)
    attributes = rng.choice(("", ' class="x"', ' title="a &lt; b > c"', " id='n1'"))
    if name == "a":
        attributes += ' href="/page?a=1&amp;b=2"'
    return f"<{name}{attributes}>", f"</{name}>"


def _wrap(rng: random.Random, words: list[str], depth: int) -> str:
    """Put tags around runs of words."""
    if not words:
        return ""
    parts = []
    place = 0
    while place < len(words):
        length = rng.randint(1, max(1, len(words) // 2))
        run = words[place : place + length]
        place += length
        if rng.random() < 0.5 and depth:
            opening, closing = _tag(rng)
            last = run[-1]
            # The mark at the end of a sentence is often outside.
            mark = last[-1] if last[-1] in ".,!?" and rng.random() < 0.5 else ""
            run = [*run[:-1], last[: len(last) - len(mark)]]
            parts.append(f"{opening}{_wrap(rng, run, depth - 1)}{closing}{mark}")
        else:
            parts.append(" ".join(run))
    return " ".join(parts)


def _flat(rng: random.Random) -> str:
    return f"<p>{_wrap(rng, _sentence(rng).split(), 1)}</p>"


def _nested(rng: random.Random) -> str:
    return f"<div><p>{_wrap(rng, _sentence(rng).split(), 4)}</p>\n  </div>"


def _table(rng: random.Random) -> str:
    cells = [_wrap(rng, _sentence(rng).split(), 1) for _ in range(4)]
    return (
        f"<table><thead><tr><th>{cells[0]}</th><th>{cells[1]}</th></tr></thead>\n"
        f"<tbody><tr><td>{cells[2]}</td><td colspan='2'>{cells[3]}</td></tr></tbody></table>"
    )


def _breaks(rng: random.Random) -> str:
    return (
        f"<p>{_wrap(rng, _sentence(rng).split(), 1)}<br/>{_sentence(rng)}<br />{_sentence(rng)}</p>"
    )


def _entities(rng: random.Random) -> str:
    text = _wrap(rng, _sentence(rng).split(), 1)
    return f"<p>{text} &amp;&#160;&lt;3 &gt; &#x2764; {_sentence(rng)}</p>"


def _untouched(rng: random.Random) -> str:
    name = rng.choice(("code", "kbd", "samp", 'span translate="no"', "i class='a notranslate'"))
    words = _sentence(rng).split()
    place = rng.randrange(len(words) - 1)
    closing = name.split()[0]
    words[place] = f"<{name}>{words[place]}</{closing}>"
    return f"<p>{' '.join(words)}</p><p translate='no'>Keep <b>this</b> as it is.</p>"


def _list(rng: random.Random) -> str:
    items = "".join(f"\n<li>{_wrap(rng, _sentence(rng).split(), 2)}</li>" for _ in range(3))
    return f"<h1>{_sentence(rng)}</h1><ul>{items}\n</ul>"


def _points(rng: random.Random) -> str:
    words = _wrap(rng, _sentence(rng).split(), 1).split(" ")
    for point in ('<img src="a.png" alt="x"/>', "<!-- note -->", "<wbr/>", "<b></b>"):
        if rng.random() < 0.6 and "<" not in "".join(words[:1]):
            words.insert(1, point)
    return f"<p>{' '.join(words)}<img src='end.png'/></p>"


def _mixed(rng: random.Random) -> str:
    return (
        f"{_sentence(rng)} <blockquote>{_wrap(rng, _sentence(rng).split(), 2)} "
        f"{_wrap(rng, _sentence(rng).split(), 2)}</blockquote><script>if (a &lt; b) go();</script>"
        f"<pre>{_sentence(rng)}\n  {_sentence(rng)}</pre>"
    )


def _whole(rng: random.Random) -> str:
    opening, closing = _tag(rng)
    return f"{opening}<b>{_sentence(rng)}</b>{closing}"
