"""The words of a source that a translation attends to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pellucid.bundle import Bundle
from pellucid.config import ModelConfig
from pellucid.decode.attending import attend_in_c
from pellucid.inside.align.link_views import PairMaps, View
from pellucid.languages.function_words import is_function_word
from pellucid.native.engine import NativeEngine
from pellucid.text.token_words import source_pieces, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.text.tokenizers.whole_words import without_joiner, word_cutter
from pellucid.translate.results import HESITANT

if TYPE_CHECKING:
    from pellucid.decode.decoder import Decoder
    from pellucid.model import EncoderDecoder

_PAIRS_AT_ONCE = 64
"""Pairs of similar length that the engine in C computes together."""

# In a short translation most rows may rightly attend to one word.
_FEWEST_TOKENS = 8
_FEWEST_WORDS = 3
_STUCK = 0.8

_LEAST_LINK = 0.1
_CLEAR_LINK = 0.2
"""The weight that the head of word links must put on every word in some row, and the weight below
which a word is named when one lacks it. Of 489 right translations of the corpus two lack it."""
_MARKS = ".,;:!?\u202f"

_LEAST_ON_UNKNOWN = 0.1
"""The attention that unknown source tokens must get together to stand for an unknown word."""


class AttentionReader:
    """Computes the cross-attention of translations: in C, or on PyTorch if the engine cannot.

    Args:
        decoder: what found the translations.
        config: the configuration of its model, or of the first of several.
        tokenizer: the model's.
        load_model: gives that model for PyTorch.
        bundle: its bundle, which names a head that was taught word links.

    Attributes:
        config, tokenizer, load_model, bundle: as given.
    """

    def __init__(
        self,
        decoder: Decoder,
        config: ModelConfig,
        tokenizer: Tokenizer,
        load_model: Callable[[], EncoderDecoder],
        bundle: Bundle | None = None,
    ) -> None:
        self._decoder = decoder
        self.config = config
        self.tokenizer = tokenizer
        self.load_model = load_model
        self.bundle = bundle

    def read(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Compute the weights of many pairs, those of similar length together.

        Args:
            pairs: the tokens of a source, ``</s>`` included, and those of its translation.

        Yields:
            The number of a pair and its ``weights_NHTS``, in any order, for the layers that attend
            to the source. Row t is the one that predicts token t.
        """
        # Whatever the precision of the search, so that C and PyTorch give the same weights.
        engine = self._decoder.find_engine("float32")
        if engine is None:
            yield from self._read_on_pytorch(pairs)
        else:
            yield from self._read_in_c(engine, pairs)

    def read_maps(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], view: View
    ) -> Iterator[PairMaps]:
        """Compute the maps of many pairs that a view needs.

        Args:
            pairs: the tokens of a source, ``</s>`` included, and those of its translation.
            view: which layers and maps; norms are computed by PyTorch only.

        Yields:
            The maps of each pair, in any order.
        """
        if view.map == "norms":
            yield from self._map_on_pytorch(pairs, view)
            return
        layers = self.config.attending_layers
        for index, weights_NHTS in self.read(pairs):
            mean_N1TS = weights_NHTS.mean(axis=1, keepdims=True)
            maps_NXTS = np.concatenate([weights_NHTS, mean_N1TS], axis=1)
            by_layer = dict(zip(layers, maps_NXTS, strict=True))
            yield PairMaps(index, by_layer, weights_NHTS.shape[1])

    def read_mean(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> np.ndarray:
        """Compute the mean over layers and heads for one pair: ``weights_TS``."""
        ((_, weights_NHTS),) = self.read([(source_ids, target_ids)])
        weights_TS: np.ndarray = weights_NHTS.mean(axis=(0, 1))
        return weights_TS

    def _read_in_c(
        self, engine: NativeEngine, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Iterator[tuple[int, np.ndarray]]:
        start_id = self.tokenizer.config.target_start_id
        # A group computes as many steps as its longest pair, so similar lengths go together.
        order = sorted(range(len(pairs)), key=lambda index: max(map(len, pairs[index])))
        for first in range(0, len(order), _PAIRS_AT_ONCE):
            group = order[first : first + _PAIRS_AT_ONCE]
            sources = [pairs[index][0] for index in group]
            targets = [pairs[index][1] for index in group]
            change = self._decoder.change
            # The pairs are what was just searched for.
            given = None if change is None else change.vectors(sources, again=True)
            weights = attend_in_c(engine, sources, targets, start_id, given)
            yield from zip(group, weights, strict=True)

    def _read_on_pytorch(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Iterator[tuple[int, np.ndarray]]:
        layers = self.config.attending_layers
        for maps in self._map_on_pytorch(pairs, None):
            heads = slice(maps.num_heads)  # The mean of the heads comes after them.
            yield maps.index, np.stack([maps.layers[layer][heads] for layer in layers])

    def _map_on_pytorch(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], view: View | None
    ) -> Iterator[PairMaps]:
        from pellucid.inside.align.alignment_maps import map_pairs

        ids = self.tokenizer.config
        layers: Sequence[int] = self.config.attending_layers
        if view is not None and view.layer is not None:
            layers = [view.layer]
        return map_pairs(
            self.load_model(),
            pairs,
            layers,
            pad_id=ids.pad_id,
            start_id=ids.target_start_id,
            has_norms=view is not None and view.map == "norms",
            change=self._decoder.change,
        )


def is_stuck(
    reader: AttentionReader,
    source: str,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
) -> bool:
    """Tell whether a translation attends to one word of its source nearly all the time.

    A short source or translation is never stuck.

    Args:
        reader: computes attention.
        source: the line.
        source_ids: its tokens, ``</s>`` included.
        target_ids: the translation.
    """
    tokenizer = reader.tokenizer
    if not reader.config.has_attention:
        return False
    if len(target_ids) < _FEWEST_TOKENS or len(source_pieces(tokenizer, source)) < _FEWEST_WORDS:
        return False
    # The last column is `</s>`, which belongs to no word.
    weights_TS = reader.read_mean(source_ids, target_ids)[:, :-1]
    # The tokens of a language code have no word.
    words = words_of_tokens(tokenizer, "source", source, source_ids)
    owners = [one.start if one else -1 for one in words]
    attended = [owners[token] for token in weights_TS.argmax(axis=-1).tolist()]
    return max(map(attended.count, attended)) >= _STUCK * len(attended)


class GivenPair(NamedTuple):
    """A source and its translation.

    Attributes:
        source: the text.
        source_ids: its tokens, ``</s>`` included.
        target_ids: those of the translation.
        logs: the log-probability of each of these.
    """

    source: str
    source_ids: Sequence[int]
    target_ids: Sequence[int]
    logs: Sequence[float]


def unlinked_words(
    reader: AttentionReader,
    place: tuple[int, int],
    convention: Literal["predicts", "reads"],
    pairs: Sequence[GivenPair],
) -> list[tuple[str, ...]]:
    """List the words of each source that no word of its translation is linked to.

    A row that predicts a mark links nothing: *I want to go.* as *Je veux.* has such a row, and its
    weight rests on what was not said.

    A row that predicts another token than the model expects attends to what it expects. After a
    word that is lost, it is that word which the row attends to, and the word that it writes has no
    link: of *The mice were big* as *Les étaient grandes*, *mice* is named, and not *were*.

    Words such as *on* in *put on* often have no counterpart, so that they count only next to other
    words, or if the model hesitated.

    Args:
        reader: computes attention.
        place: the layer and the head that were taught word links.
        convention: the token that a row of that head counts for.
        pairs: sources and translations.
    """
    found: list[tuple[str, ...]] = [()] * len(pairs)
    tokenizer = reader.tokenizer
    language = "" if reader.bundle is None else reader.bundle.config.languages.source
    layer, head = place
    # The row that reads the start token, or predicts `</s>`, counts for no word.
    rows = slice(1, None) if convention == "reads" else slice(-1)
    for index, weights_NHTS in reader.read([pair[1:3] for pair in pairs]):
        source, _, target_ids, logs = pair = pairs[index]
        column = list(reader.config.attending_layers).index(layer)
        weights_TS = weights_NHTS[column, head, rows]
        targets = tokenizer.target_tokens(target_ids)[: len(weights_TS)]
        of_words = [row for row, token in enumerate(targets) if any(map(str.isalnum, token))]
        hesitant = [row for row in of_words if logs[row] < HESITANT]
        most = _most_on_words(tokenizer, pair, weights_TS[of_words])
        if min(most.values(), default=1.0) >= _LEAST_LINK:
            continue
        unlinked = {word for word, weight in most.items() if weight < _CLEAR_LINK}
        if convention == "predicts" and hesitant:
            sure = _most_on_words(tokenizer, pair, weights_TS[[*{*of_words} - {*hesitant}]])
            unlinked = _without_followers(unlinked, sure, len(hesitant))
        # Pieces end at spaces, so a mark may still be attached to its word.
        pieces = source_pieces(tokenizer, source)
        words = [pieces[word].strip(_MARKS) for word in sorted(unlinked)]
        if hesitant or not all(is_function_word(word, language) for word in words):
            found[index] = tuple(words)
    return found


def _most_on_words(
    tokenizer: Tokenizer, pair: GivenPair, weights_TS: np.ndarray
) -> dict[int, float]:
    """Find the largest weight that some rows put on each word of a source."""
    most_S = weights_TS.max(axis=0, initial=0.0)
    tokens = tokenizer.source_tokens(pair.source_ids)
    most: dict[int, float] = {}
    owners = words_of_tokens(tokenizer, "source", pair.source, pair.source_ids)
    for token, words in enumerate(owners):
        # A mark may be left out.
        for word in words if any(map(str.isalnum, tokens[token])) else ():
            # A word is linked if one of its tokens is.
            most[word] = max(most.get(word, 0.0), float(most_S[token]))
    return most


def _without_followers(unlinked: set[int], sure: Mapping[int, float], most: int) -> set[int]:
    """Name the words that only rows of unexpected tokens attend to, and not those after them.

    Args:
        unlinked: the words that no row attends to.
        sure: the weight that each word gets from all other rows.
        most: the number of such rows: more words than these write are lost.
    """
    found = set(unlinked)
    for word in sorted(sure):
        if sure[word] >= _CLEAR_LINK or word in unlinked:
            continue
        found.add(word)
        after = word + 1
        while after in unlinked:
            after += 1
        if after - word - 1 <= most:
            found.difference_update(range(word + 1, after))
    return found


def replace_unknown(
    reader: AttentionReader,
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
        reader: computes attention.
        source: the line.
        source_ids: its tokens, ``</s>`` included.
        target_ids: the translation.
        text: its text.

    Source:
        Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation";
        Jean et al. 2015, section 3.3.
    """
    tokenizer = reader.tokenizer
    unknown = tokenizer.config.unk_id
    rows = [row for row, id_ in enumerate(target_ids) if id_ == unknown]
    sign = tokenizer.decode_target([unknown])
    pieces = text.split(sign.strip())
    # The text may spell the sign itself; then it is unclear which one is which token.
    if not rows or len(pieces) != len(rows) + 1:
        return text
    weights_TS = reader.read_mean(source_ids, target_ids)[:, :-1]
    surfaces = _surfaces(tokenizer, source, source_ids)
    words = []
    earlier = (-2, -1)
    for row in rows:
        token = _attended(weights_TS[row], source_ids, unknown)
        # Neighbors that attend to the same source token are pieces of one word: write it once.
        is_same = earlier == (row - 1, token)
        words.append("" if is_same else surfaces[token])
        earlier = row, token
    # SentencePiece writes the sign with a space on either side.
    extra = " " if sign != sign.strip() or sign.strip() == "⁇" else ""
    result = pieces[0]
    for word, piece in zip(words, pieces[1:], strict=True):
        # If nothing is written for a token, the space before it goes too.
        head = result.removesuffix(extra) if word else result.rstrip(" ")
        result = head + word + piece.removeprefix(extra)
    return result


def _attended(weights_S: np.ndarray, source_ids: Sequence[int], unknown: int) -> int:
    """Find the source token that a row attends to most, an unknown one if it attends to any."""
    is_unknown_S = np.array([id_ == unknown for id_ in source_ids[:-1]])
    if float(weights_S[is_unknown_S].sum()) >= _LEAST_ON_UNKNOWN:
        weights_S = weights_S * is_unknown_S
    return int(weights_S.argmax())


def _surfaces(tokenizer: Tokenizer, source: str, source_ids: Sequence[int]) -> list[str]:
    """Write the text that each source token would bring into a translation."""
    if tokenizer.config.kind == "words":
        # The ids cannot tell: the words to copy are all `<unk>`.
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
    # Unknown letters that touch are one token. If the numbers differ, it is unclear which.
    if len(runs) == len(places):
        for place, run in zip(places, runs, strict=True):
            surfaces[place] = run
    return surfaces
