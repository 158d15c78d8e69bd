"""An antecedent and its pronoun, further and further apart: weights and right pronouns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.corpora import Example, make_split
from pellucid.corpora.lexicon import ADJECTIVES
from pellucid.inside.pair import Keeper
from pellucid.lessons.why.tiny.learn import START, Tiny
from pellucid.lessons.why.tiny.two_nouns import draw_hesitant
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder
from pellucid.text.token_words import words_of_tokens


@dataclass(frozen=True)
class Case:
    """A sentence with a pronoun, as numbers, and the places to look at.

    Attributes:
        source: the source's tokens.
        read: the tokens that the decoder reads.
        rows: the places of *it* and of the last word in the source.
        antecedent: the places of the antecedent in the source.
        other: the places of the other noun.
        target_row: the decoder row that writes the pronoun.
        right: the pronoun's token.
        wrong: the token of the other gender's pronoun.
        is_far: True if the words are between this antecedent and its pronoun.
    """

    source: tuple[int, ...]
    read: tuple[int, ...]
    rows: tuple[int, int]
    antecedent: tuple[int, ...]
    other: tuple[int, ...]
    target_row: int
    right: int
    wrong: int
    is_far: bool = True


@torch.inference_mode()
def look_apart(
    model: EncoderDecoder, draw: Callable[[int, str], Sequence[Case]], words: Sequence[int]
) -> list[dict[str, Any]]:
    """Look at sentences with more and more words between.

    Args:
        model: reads them.
        draw: makes sentences from the number of words and a purpose, ``choose`` or ``look``.
        words: the numbers of words.

    Returns:
        For each number of ``words`` the ``place``: the attention and the row that were looked at;
        there, averaged over sentences whose antecedent is far, its ``weight``, that of the
        ``other`` noun, and the ``even`` one that even attention would give; and the share of
        pronouns that are ``right``, likelier than the other gender's, over all sentences.
    """
    names = _names(model)
    # The attention is chosen on other sentences: the best of so many would be high by chance.
    chosen = torch.stack([_look(model, case)[0] for case in draw(words[0], "choose")])
    # More on the antecedent than on the other noun: an attention that likes all nouns says nothing.
    best = int((chosen[:, :, 0] - chosen[:, :, 1]).mean(dim=0).argmax())
    found = []
    for number in words:
        cases = draw(number, "look")
        seen = [_look(model, case) for case in cases]
        # The near antecedent has no words in between.
        far = [place for place, case in enumerate(cases) if case.is_far]
        weights_X2 = torch.stack([seen[place][0][best] for place in far])
        even = sum(len(cases[place].antecedent) / len(cases[place].source) for place in far)
        antecedent, other = weights_X2.mean(dim=0).tolist()
        right = sum(is_right for _, is_right in seen) / len(seen)
        found.append(
            {
                "words": number,
                "place": names[best],
                "weight": antecedent,
                "other": other,
                "even": even / len(far),
                "right": right,
            }
        )
    return found


def draw_apart_tiny(tiny: Tiny, count: int, number: int, *, seed: int, part: str) -> list[Case]:
    """Draw sentences with hesitations for a tiny model."""
    found = []
    for (source, target), antecedent, other in draw_hesitant(
        count, least=number, most=number, seed=seed, part=part
    ):
        words = source.split()
        written = target.split()
        # The decoder row that writes a word has read all words before it.
        row = next(i for i, word in enumerate(written) if word in ("il", "elle"))
        ids = tiny.target.encode(target)
        wrong = "elle" if written[row] == "il" else "il"
        found.append(
            Case(
                tuple(tiny.source.encode(source)),
                (START, *ids[:-1]),
                (words.index("it"), len(words) - 1),
                (words.index(antecedent),),
                (words.index(other),),
                row,
                ids[row],
                tiny.target.words.index(wrong),
            )
        )
    return found


def draw_apart_packaged(
    bundle: Bundle, count: int, number: int, *, seed: int, part: str
) -> list[Case]:
    """Draw sentences of the built-in corpus, with adjectives put before the second noun.

    The antecedent is the first noun in half of them, and only then far from its pronoun.
    """
    numbers = generator(seed, "why apart", part, number)
    adjectives = [one.english for one in ADJECTIVES]
    found: list[Case] = []
    examples = _fitting(40 * count, seed)
    half = len(examples) // 4 * 2  # Sentences come in pairs, which stay together.
    for example in examples[:half] if part == "choose" else examples[half:]:
        if len(found) == count:
            break
        words = [adjectives[i] for i in numbers.integers(len(adjectives), size=number)]
        found.append(_make_case(bundle, example, words))
    return found


@cache
def _fitting(count: int, seed: int) -> tuple[Example, ...]:
    """Draw sentences about *it* in pairs whose translations differ in the pronoun."""
    examples = make_split("pronoun", seed=seed, count=count)
    kept: list[Example] = []
    for one, two in zip(examples[::2], examples[1::2], strict=False):
        if sorted((_pronouns(one), _pronouns(two))) == [["elle"], ["il"]]:
            kept += [one, two]
    return tuple(kept)


def _pronouns(example: Example) -> list[str]:
    if example.construction != "subject pronoun, place":
        return []
    written = example.target.split(" ")
    return [written[pronoun.target] for pronoun in example.pronouns]


def _make_case(bundle: Bundle, example: Example, between: Sequence[str]) -> Case:
    tokenizer = bundle.tokenizer
    pronoun = example.pronouns[0]
    words = example.source.split(" ")
    second = pronoun.source - 2  # “… the coat and it”
    is_far = pronoun.source_antecedent < second
    first = pronoun.source_antecedent if is_far else words.index("was") - 1
    source = " ".join([*words[:second], *between, *words[second:]])
    # The words between move the second noun and all that follows.
    shift = len(between)
    source_ids = tokenizer.encode_source(source)
    owners = words_of_tokens(tokenizer, "source", source, source_ids)

    def tokens_of(word: int) -> tuple[int, ...]:
        return tuple(token for token, owned in enumerate(owners) if word in owned)

    target_ids = tokenizer.encode_target(example.target)
    targets = words_of_tokens(tokenizer, "target", example.target, target_ids)
    row = next(token for token, owned in enumerate(targets) if pronoun.target in owned)
    gender = example.target.split(" ")[pronoun.target]
    wrong = "elle" if gender == "il" else "il"
    antecedent = tokens_of(first)
    other = tokens_of(second + shift)
    if not is_far:
        antecedent, other = other, antecedent
    return Case(
        tuple(source_ids),
        (tokenizer.config.target_start_id, *target_ids[:-1]),
        (tokens_of(pronoun.source + shift)[-1], tokens_of(len(words) - 1 + shift)[-1]),
        antecedent,
        other,
        row,
        target_ids[row],
        tokenizer.encode_target(wrong)[0],
        is_far,
    )


def _names(model: EncoderDecoder) -> list[str]:
    config = model.config
    read = [
        f"row of {row} in encoder layer {layer} head {head}"
        for layer in range(config.num_encoder_layers)
        for row in ("it", "the last word")
        for head in range(config.num_heads)
    ]
    written = [
        f"row of the pronoun in decoder layer {layer} head {head}"
        for layer in range(config.num_decoder_layers)
        for head in range(config.num_heads)
    ]
    return [*read, *written]


def _look(model: EncoderDecoder, case: Case) -> tuple[Tensor, bool]:
    """Collect the weights on both nouns in every attention and row, in the order of `_names`."""
    keeper = Keeper(("weights",))
    logits_TV = model(torch.tensor([case.source]), torch.tensor([case.read]), probe=keeper)[0]
    rows = []
    for layer in range(model.config.num_encoder_layers):
        weights_HLM = keeper.found[f"encoder.{layer}.self.weights"][0]
        # The order of these rows is that of the names.
        rows += [weights_HLM[:, row] for row in case.rows]
    for layer in range(model.config.num_decoder_layers):
        rows.append(keeper.found[f"decoder.{layer}.cross.weights"][0][:, case.target_row])
    weights_XM = torch.cat(rows)
    both = [weights_XM[:, list(places)].sum(dim=-1) for places in (case.antecedent, case.other)]
    scores_V = logits_TV[case.target_row]
    return torch.stack(both, dim=-1), bool(scores_V[case.right] > scores_V[case.wrong])
