"""Ends of sentences in several languages, and groups of sentences that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.text.sentences import count_sentences, join_parts, split_sentences

# Sentences are set apart by a bar here, with the white space around it.
TEXTS = [
    "One sentence.",
    "It is late. | We go home! | Do you come? | Yes",
    "Wait... | What is that?! | Nothing… | 3 cats.",
    'He said "Stop." | "Why?" she asked. | (It was dark.) | So he went.',
    "He asked “Why?” | “No reason.” | Then he left.",
    "Mr. Smith and Dr. Jones live in St. Louis, cf. Prof. Brown vs. Rev. Green. | They met.",
    "J. S. Bach, e.g. Mass in B minor, i.e. BWV 232, costs 3.14 or 5.00. | It is 2.50.",
    "The U.S. President said no. | Nobody heard. | See No. 5 and Fig. 3, on p. 12, of Jan. 5.",
    "He told me. | I like art. | It is 1990. | Then came 2000.",
    "visit example.com. | Then write to a.b@example.org now.",
    "M. Dupont et Mme Durand sont là. | « Oui ! » dit-il. | « Vraiment ? » | Elle rit.",
    "C’est fini\u00a0! | L’été est là… | Où\u202f? | À Paris.",
    "Das ist z.B. Herr Müller. | Am 3. Mai kommt er, bzw. Hr. Maier. | „Gut.“ | Er geht.",
    "Er ging. | »Komm!« | Sie kam. | Es kostet 5 Mio. Euro.",
    "¿Qué pasa? | ¡Nada! | El Sr. García no viene.",
    "Он ушёл. | Она осталась. | – Где он? – спросил он.",
    "مرحبا. | كيف حالك؟ | بخير",
    "यह घर है। | वह गया।",
    "今日は。|元気ですか？|「はい。」と言った。|「はい。」|「いいえ。」 |彼は行った！",
    "他走了。|“好！”我说。 | Then English. | 然后中文。|Ok. | 好",
    "I like it! and you? yes.",
    "Price: $5. | €3 is less. | 😀 is a face. | Ok",
    "They met at 5 p.m. | Then they left Washington D.C. | It rained, i.e. The Plan failed.",
    "He saw the Prime Minister at 5 p.m. London time.",
    "Dhr. Jansen is hier. | Pan dr. Nowak mieszka przy ul. Długiej. | Ул. Ленина длинная.",
    "Vive en EE. UU. desde 1990. | Trabaja.",
    "他说：“我不去。”|她笑了！|“走！”他说。|３．５公斤。",
    "Πού είναι; | Δεν ξέρω.",
    "သူသွားတယ်။ | သူမကျန်ခဲ့တယ်။",
    "እሱ ሄደ። | እሷ ቀረች።",
    "a man rides a bicycle . | two dogs run ! | why ? | they met mr. smith at 5 p.m. | he left.",
    "wait... what is that",
    "no end",
    "...",
]


@pytest.mark.parametrize("text", TEXTS)
def test_split_sentences_at_the_bars_alone(text: str) -> None:
    expected = [sentence.strip() for sentence in text.split("|")]
    assert split_sentences(text.replace("|", "")) == expected


@pytest.mark.parametrize("text", ["", " ", "\t \u00a0"])
def test_split_sentences_of_nothing_are_none(text: str) -> None:
    assert split_sentences(text) == []


LINES = st.text(st.sampled_from("aB1 .!?…。！\"'»«()と日\u00a0\t"), max_size=40)


@given(st.one_of(LINES, st.text(max_size=40)))
def test_split_sentences_lose_nothing(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert count_sentences(text) == len(sentences)


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (["It is late.", "Go!"], "It is late. Go!"),
        (["他走了。", "她笑了"], "他走了。她笑了"),
        (["「はい」", "そう"], "「はい」そう"),
        (["他走了。", "OK"], "他走了。OK"),
        (["สวัสดี", "ครับ"], "สวัสดี ครับ"),
        (["", "One.", "", "Two."], "One. Two."),
        ([], ""),
    ],
)
def test_join_parts_with_spaces_where_the_script_has_them(
    sentences: list[str], expected: str
) -> None:
    gaps = [None] * len(sentences)
    assert join_parts(sentences, ["", *gaps[1:], ""][: len(sentences) + 1]) == expected
