"""The words of a source that a translation attends to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from pellucid.inside.align.alignment_maps import View, map_pairs
from pellucid.inside.pair import Pair
from pellucid.model import EncoderDecoder
from pellucid.text.token_words import source_pieces, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import without_joiner, word_cutter

_FEWEST_TOKENS = 8
_FEWEST_WORDS = 3
_STUCK = 0.8

_LEAST_LINK = 0.1
"""The weight that the head of word links must put on a word in some row."""
_MARKS = ".,;:!?\u202f"

_LEAST_ON_UNKNOWN = 0.1
"""The attention that unknown source tokens must get together to stand for an unknown word."""


@torch.inference_mode()
def cross_attention(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
) -> Tensor:
    """Compute the cross-attention of a translation, the mean of all layers and heads.

    Row t is the one that predicted token t.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        source_ids: the source, ``</s>`` included.
        target_ids: the translation.

    Shapes:
        returns weights_TS
    """
    pair = Pair(model, tokenizer, tuple(source_ids), tuple(target_ids))
    layers = model.config.attending_layers
    found = pair.see({"weights"}, sites={f"decoder.{layer}.cross" for layer in layers})
    return torch.stack([weights_HTS.float().mean(0) for weights_HTS in found.values()]).mean(0)


def is_stuck(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    source: str,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
) -> bool:
    """Tell whether a translation attends to one word of its source nearly all the time.

    A short source or translation is never stuck.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        source: the line.
        source_ids: its tokens, ``</s>`` included.
        target_ids: the translation.
    """
    if not model.config.has_attention:
        return False
    if len(target_ids) < _FEWEST_TOKENS or len(source_pieces(tokenizer, source)) < _FEWEST_WORDS:
        return False
    weights_TS = cross_attention(model, tokenizer, source_ids, target_ids)[:, :-1]
    # The tokens of a language code have no word.
    words = words_of_tokens(tokenizer, "source", source, source_ids)
    owners = [one.start if one else -1 for one in words]
    attended = [owners[token] for token in weights_TS.argmax(dim=-1).tolist()]
    return max(map(attended.count, attended)) >= _STUCK * len(attended)


@torch.inference_mode()
def unlinked_words(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    view: View,
    pairs: Sequence[tuple[str, Sequence[int], Sequence[int]]],
) -> list[tuple[str, ...]]:
    """List the words of each source that no word of its translation is linked to.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        view: the head that was taught word links.
        pairs: a source, its tokens with ``</s>``, and those of its translation.
    """
    found: list[tuple[str, ...]] = [()] * len(pairs)
    config = tokenizer.config
    for maps in map_pairs(
        model,
        [(source_ids, target_ids) for _, source_ids, target_ids in pairs],
        [view.layer] if view.layer is not None else model.config.attending_layers,
        pad_id=config.pad_id,
        start_id=config.target_start_id,
        has_norms=False,
    ):
        source, source_ids, _ = pairs[maps.index]
        most_S = maps.get(view).max(axis=0, initial=0.0)
        tokens = tokenizer.source_tokens(source_ids)
        most: dict[int, float] = {}
        for token, words in enumerate(words_of_tokens(tokenizer, "source", source, source_ids)):
            # A mark may be left out.
            for word in words if any(map(str.isalnum, tokens[token])) else ():
                most[word] = max(most.get(word, 0.0), float(most_S[token]))
        pieces = source_pieces(tokenizer, source)
        unlinked = [word for word, weight in most.items() if weight < _LEAST_LINK]
        found[maps.index] = tuple(pieces[word].strip(_MARKS) for word in unlinked)
    return found


def replace_unknown(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    source: str,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    text: str,
) -> str:
    """Put words of the source in the place of the unknown words of a translation.

    An unknown token gets the unknown source token that its row attends to most, as rare names are
    often written alike in both languages; if no row attends to those, the word that it attends to
    most.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        source: the line.
        source_ids: its tokens, ``</s>`` included.
        target_ids: the translation.
        text: its text.

    Source:
        Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation";
        Jean et al. 2015, section 3.3.
    """
    unknown = tokenizer.config.unk_id
    rows = [row for row, id_ in enumerate(target_ids) if id_ == unknown]
    sign = tokenizer.decode_target([unknown])
    pieces = text.split(sign.strip())
    if not rows or len(pieces) != len(rows) + 1:
        return text
    weights_TS = cross_attention(model, tokenizer, source_ids, target_ids)[:, :-1]
    surfaces = _surfaces(tokenizer, source, source_ids)
    words = []
    earlier = (-2, -1)
    for row in rows:
        token = _attended(weights_TS[row], source_ids, unknown)
        is_same = earlier == (row - 1, token)
        words.append("" if is_same else surfaces[token])
        earlier = row, token
    # SentencePiece writes the sign with a space on either side.
    extra = " " if sign != sign.strip() or sign.strip() == "⁇" else ""
    result = pieces[0]
    for word, piece in zip(words, pieces[1:], strict=True):
        head = result.removesuffix(extra) if word else result.rstrip(" ")
        result = head + word + piece.removeprefix(extra)
    return result


def _attended(weights_S: Tensor, source_ids: Sequence[int], unknown: int) -> int:
    """Find the source token that a row attends to most, an unknown one if it attends to any."""
    is_unknown_S = torch.tensor([id_ == unknown for id_ in source_ids[:-1]])
    if float(weights_S[is_unknown_S].sum()) >= _LEAST_ON_UNKNOWN:
        weights_S = weights_S * is_unknown_S
    return int(weights_S.argmax())


def _surfaces(tokenizer: Tokenizer, source: str, source_ids: Sequence[int]) -> list[str]:
    """Write the text that each source token would bring into a translation."""
    if tokenizer.config.kind == "words":
        cut = word_cutter(tokenizer.config)
        return [without_joiner(token) for token in cut(tokenizer.normalized(source))]
    pieces = source_pieces(tokenizer, source)
    owners = words_of_tokens(tokenizer, "source", source, source_ids)
    surfaces = [" ".join(pieces[index] for index in owner) for owner in owners]
    # Of a word that is unknown only in part, that part: its other tokens were translated too.
    unknown = tokenizer.config.unk_id
    places = [place for place, id_ in enumerate(source_ids[:-1]) if id_ == unknown]
    letters = {letter for letter in source if unknown in tokenizer.encode_source(letter)}
    runs = ["".join(run) for is_run, run in groupby(source, letters.__contains__) if is_run]
    if len(runs) == len(places):
        for place, run in zip(places, runs, strict=True):
            surfaces[place] = run
    return surfaces
