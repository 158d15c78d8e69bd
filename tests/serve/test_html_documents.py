"""A sample of ``benchmarks/html_documents.py``: tags and texts under simple translators."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from html_documents import (
    SHAPES,
    TRANSLATORS,
    Documents,
    change_case,
    copy,
    find_faults,
    lose,
    reverse,
    seconds_of,
    translate,
)

COUNT = 50


@pytest.mark.parametrize("number", range(len(TRANSLATORS)))
def test_generated_documents_keep_tags_and_texts(number: int) -> None:
    translator = TRANSLATORS[number]
    for seed in range(1, COUNT + 1):
        document = Documents(seed).document()
        answer, found = translate(document, translator, seed)
        faults = find_faults(document, answer, found, is_lossy=translator is lose)
        assert not faults, f"{faults}\n{document}\n{answer}"
        assert translator is not copy or answer == document


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", SHAPES)
def test_hostile_shapes_take_time_in_proportion_to_their_size(name: str) -> None:
    few, many = (min(seconds_of(SHAPES[name](size), lose) for _ in range(2)) for size in (50, 400))
    assert many < 16 * few + 0.1, f"{few:.3f} s, and {many:.3f} s for eight times as much"


EXACT = (
    "Run pre<code>x</code> now.",
    "Type <kbd>Ctrl</kbd>+S.",
    "Set x=<code>{{x}}</code>.",
    "See (<code>a.b()</code>) here.",
    "The <code>--all</code>-option",
    "<code>&lt;b&gt;</code>.",
    "ex<code>e</code>x and e",
    "use<code> x </code> <b> y </b>",
    "The Car<sup>&reg;</sup> is red.<sup><a href='#1'>[1]</a></sup>",
    "H<sub>2</sub>O, CO<sub>2</sub> and the 1<sup>st</sup>",
    "1-<i>London, Paris</i>",
    "The tel<wbr>e<wbr>phone <i>é</i>&nbsp;w",
    "<p>\r\n  The <b>big\n\tcat</b>  \n </p>",
    "a < b &lt;<b>&lt;</b> AT&T &copy &not; &#11; &amp;lt; &eacute;é",
    "<img alt=cat><a TITLE='it&#39;s \"x\" & y' href=x>z</a>",
    "<b><i>x</i><img></b> <b></b><i><b></b> </i> y",
    "<b>one <p>two</b> <i>x <b>y</i> z</b></u> a",
    "<b>" * 80 + "a b" + "</b>" * 80,
    "<ruby>漢<rp>(<rt>kan<rp>)</ruby> <b>猫</b><i>在</i>",
)


@pytest.mark.parametrize("source", EXACT)
def test_copying_translator_gives_the_document_itself(source: str) -> None:
    assert translate(source, copy)[0] == source
    # What is equal stays equal if something else is not.
    longer = f"<p>Zzz <u>zz</u> zz</p>{source}"
    assert translate(longer, copy)[0] == longer


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Type <kbd>Ctrl</kbd>+S.", "tYPE <kbd>Ctrl</kbd>+s."),
        ("The <code>--all</code>-option", "tHE <code>--all</code>-OPTION"),
        ("The Car<sup>®</sup> is red.", "tHE cAR<sup>®</sup> IS RED."),
        ("cat<b>s</b> eat", "CAT<b>S</b> EAT"),
        ("The <ruby>cat<rt>kat</ruby> sees", "tHE <ruby>CAT<rt>kat</ruby> SEES"),
        ("<pre>The cat    is\n    red\n</pre>", "<pre>tHE CAT    IS\n    RED\n</pre>"),
        (
            "old <my-icon></my-icon> car <svg><p>x</svg>",
            "OLD <my-icon></my-icon> CAR <svg><p>x</svg>",
        ),
        ("Press <button>Save it</button> now", "pRESS <button>sAVE IT</button> NOW"),
        ("<td>12:30</td> <b>1,234.50</b>", "<td>12:30</td> <b>1,234.50</b>"),
        (
            "<p translate=no title=x>a <i translate>b</i></p>",
            "<p translate=no title=x>a <i translate>B</i></p>",
        ),
        ("a <a href='x>b</a> <a b", "A <a href='x>B</a> <a b"),
        ("<!-->a<!--->b<!--x--!>c", "<!-->A<!--->B<!--x--!>C"),
        ("<textarea placeholder='a'>b</textarea>", "<textarea placeholder='A'>b</textarea>"),
        ("<input value=a><input type=reset value=a>", "<input value=a><input type=reset value=A>"),
        ("<meta name=description content=a>", "<meta name=description content=A>"),
        ("<meta property=og:title content='a'>", "<meta property=og:title content='A'>"),
        ("<i aria-label='a b' data-title='a'></i>", "<i aria-label='A B' data-title='a'></i>"),
        ("<i aria-description=a aria-labelledby=a>", "<i aria-description=A aria-labelledby=a>"),
        ("<optgroup label='a'><option label=b>c", "<optgroup label='A'><option label=B>C"),
        (
            "<track label='a' kind=captions><menu label=a>",
            "<track label='A' kind=captions><menu label=a>",
        ),
    ],
)
def test_changed_case_leaves_tags_and_copies_at_their_places(source: str, expected: str) -> None:
    assert translate(source, change_case)[0] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<a>The cat</a><a>The dog</a>", "<a>cat The</a><a>dog The</a>"),
        ("<a>a!</a><a>b c</a>", "<a>a!</a><a>c b</a>"),
        ("<b>Home</b><i></i><b>The news</b>", "<b>Home</b><i></i><b>news The</b>"),
        ("<a>x y</a><sup>®</sup><a>News</a>", "<a>y x</a><sup>®</sup><a>News</a>"),
        ("a <b>cat</b>s", "<b>cat</b>s a"),
        ("use pre<code>x</code> (<code>y</code>)", "(<code>y</code>) pre<code>x</code> use"),
        ("one <a>two<br>six</a> ten", "one <a>two<br>six</a> ten"),
        ("a <b id=n class=x>b c</b>", "<b id=n class=x>c b</b> a"),
        ("<img alt='the cat' title=\"a b\">", "<img alt='cat the' title=\"b a\">"),
        ("<img alt=the>", "<img alt=the>"),
    ],
)
def test_reversed_words_take_their_tags_along(source: str, expected: str) -> None:
    assert translate(source, reverse)[0] == expected
