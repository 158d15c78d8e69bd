"""Why this word and not that one, and integrated gradients: sums, parity, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_imported import write_imported

from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside import MEASURES, Pair, measure
from pellucid.inside.measures.contrast import Contrast, contrast_measure, find_contrast
from pellucid.inside.measures.integrated import integrated_gradients
from pellucid.inside.pair import make_pair

SOURCE = "the cat sleeps near a dog"
TARGET = "le chat dort une pomme."


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_imported(tmp_path_factory.mktemp("contrast") / "imported", ())


@pytest.fixture(scope="module")
def pair(bundle: Bundle) -> Pair:
    return make_pair(bundle, SOURCE, TARGET, float64=True)


def end_to_end(pair: Pair, share: float, parts: tuple[str, str] = ("encoder", "decoder")) -> object:
    """Score the target with all embeddings multiplied by a share, in one run."""

    class Shrink:
        def see(self, site: str, stage: str, tensor: torch.Tensor) -> torch.Tensor | None:
            return tensor * share if stage == "embedding" and site in parts else None

    with torch.inference_mode():
        return pair.log_probabilities(probe=Shrink()).numpy()


def test_integrated_gradients_add_up_to_the_difference_between_the_ends(pair: Pair) -> None:
    found = integrated_gradients(pair, steps=64)
    expected = end_to_end(pair, 1.0) - end_to_end(pair, 0.0)  # type: ignore[operator]
    assert found.differences == pytest.approx(expected, abs=1e-10)
    errors = [
        np.abs(one.matrix.sum(axis=1) - expected).max()
        for one in (integrated_gradients(pair, steps=steps) for steps in (2, 64, 512))
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02
    assert f"{errors[1]:.1e}" in found.title
    # A row does not depend on what later rows read.
    num_source = len(pair.source_ids)
    for row in range(len(pair.target_ids)):
        assert not found.matrix[row, num_source + row + 1 :].any()


def test_integrated_gradients_equal_a_riemann_sum_of_numerical_gradients(pair: Pair) -> None:
    found = integrated_gradients(pair, steps=256).matrix[2, 1]
    embedding = pair.see(("embedding",))["encoder.embedding"].detach()

    def score(share: float, own: float) -> float:
        class Move:
            def see(self, site: str, stage: str, tensor: torch.Tensor) -> torch.Tensor | None:
                if stage != "embedding":
                    return None
                moved = share * tensor
                if site == "encoder":
                    moved[:, 1] = own * embedding[1]
                return moved

        with torch.inference_mode():
            return float(pair.log_probabilities(probe=Move())[2])

    step, total = 1e-5, 0.0
    shares = (np.arange(400) + 0.5) / 400
    for share in shares:
        total += (score(share, share + step) - score(share, share - step)) / (2 * step) / 400
    assert found == pytest.approx(total, abs=0.02)


def test_integrated_gradients_from_unknown_words_begin_there(bundle: Bundle, pair: Pair) -> None:
    found = integrated_gradients(pair, steps=64, baseline="unknown")
    unk, eos = bundle.tokenizer.config.unk_id, bundle.tokenizer.config.eos_id
    source = tuple(unk if id_ != eos else eos for id_ in pair.source_ids)
    read = tuple(unk for _ in pair.target_ids[:-1])
    with torch.inference_mode():
        other = Pair(pair.model, pair.tokenizer, source, (*read, eos))
        start = other.logits().log_softmax(dim=-1)
        own = start[torch.arange(len(pair.target_ids)), list(pair.target_ids)].numpy()
    expected = end_to_end(pair, 1.0) - own  # type: ignore[operator]
    assert found.differences == pytest.approx(expected, abs=1e-10)
    # Tokens that stay as they are have no part in the difference.
    assert not found.matrix[:, [len(source) - 1, len(source)]].any()


@pytest.mark.parametrize("changes", [{"steps": 0}, {"steps": 10**6}, {"baseline": "zeros"}])
def test_integrated_gradients_refuse_what_they_cannot_compute(
    pair: Pair, changes: dict[str, object]
) -> None:
    with pytest.raises(InputError, match=r"(integrated gradients|baseline) must be"):
        measure(pair, "integrated-gradients", **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="it has no integral"):
        measure(pair, "occlusion", steps=3)


def contrast(pair: Pair, why: str = "chat", other: str = "pomme") -> Contrast:
    return find_contrast(pair, TARGET, why, other)


def test_contrast_has_both_words_after_the_same_beginning(pair: Pair) -> None:
    found = contrast(pair)
    tokens = pair.predicted_tokens
    assert found.why.predicted_tokens[: found.start] == tokens[: found.start]
    assert found.other.predicted_tokens[: found.start] == tokens[: found.start]
    assert ["".join(pieces).strip("▁") for pieces in found.pieces] == ["chat", "pomme"]
    with torch.inference_mode():
        logs = pair.log_probabilities().tolist()
    own = logs[found.start : found.start + len(found.pieces[0])]
    assert found.log_probabilities[0] == pytest.approx(own, abs=1e-10)
    assert found.difference == pytest.approx(sum(own) - sum(found.log_probabilities[1]), abs=1e-10)


def test_contrast_without_another_word_takes_the_next_likeliest(pair: Pair) -> None:
    found = find_contrast(pair, TARGET, "chat", None)
    assert found.words[1] not in ("", "chat")
    begin = pair.target_ids[: found.start]
    assert found.other.target_ids[: found.start] == begin
    with torch.inference_mode():
        logs = pair.logits()[found.start].log_softmax(-1)
    taken = logs[found.other.target_ids[found.start]]
    better = (logs > taken).nonzero()[:, 0].tolist()
    for token in {*better} - {pair.target_ids[found.start]}:  # likelier ones do not begin a word
        text = pair.tokenizer.decode_target([*begin, token]).split()
        assert pair.tokenizer.encode_target(text[-1] if text else "")[:1] != [token]


@pytest.mark.parametrize("other", ["pomme", "dort une", "ch"])
@pytest.mark.parametrize("name", ["occlusion", "integrated-gradients"])
def test_contrast_of_a_linear_measure_is_the_measure_of_the_difference(
    pair: Pair, name: str, other: str
) -> None:
    found = contrast(pair, other=other)
    map_ = contrast_measure(found, name, **({"steps": 32} if name != "occlusion" else {}))
    assert map_.matrix.shape[0] == 1
    if name == "occlusion":
        # Without the second source word, by another run of both.
        words = range(len(map_.matrix[0]))
        ids = list(pair.source_ids)
        without = (*ids[:1], *ids[2:])
        sums = []
        for one in (found.why, found.other):
            changed = replace(one, source_ids=without)
            with torch.inference_mode():
                sums.append(changed.log_probabilities()[found.start :].sum().item())
        expected = found.difference - (sums[0] - sums[1])
        if pair.source_tokens[2].startswith("▁") and len(words) > 1:
            assert map_.matrix[0, 1] == pytest.approx(expected, abs=1e-9)
    else:
        ends = [
            end_to_end(one, 1.0)[found.start :].sum() - end_to_end(one, 0.0)[found.start :].sum()  # type: ignore[index]
            for one in (found.why, found.other)
        ]
        assert map_.differences == pytest.approx((ends[0] - ends[1],), abs=1e-9)
        singles = [
            measure(one, name, steps=32).matrix[found.start :].sum()
            for one in (found.why, found.other)
        ]
        assert map_.matrix.sum() == pytest.approx(singles[0] - singles[1], abs=1e-9)


@pytest.mark.parametrize("name", list(MEASURES))
def test_contrast_of_every_measure_exchanges_its_sign_with_the_words(pair: Pair, name: str) -> None:
    found = contrast(pair)
    turned = Contrast(found.other, found.why, found.start, found.words[::-1], found.choice)
    place = {"steps": 8} if name == "integrated-gradients" else {}
    one, other = (contrast_measure(each, name, **place) for each in (found, turned))
    assert one.matrix == pytest.approx(-other.matrix, abs=1e-12)
    assert len(one.column_tokens) == one.matrix.shape[1]
    if not MEASURES[name].is_of_word and [len(p) for p in found.pieces] == [1, 1]:
        assert not one.matrix.any()
        assert "all 0" in one.title


def test_contrast_of_a_longer_word_begins_where_the_pieces_differ(pair: Pair) -> None:
    found = contrast(pair, "dort", "dormi")
    first, second = found.pieces
    assert first[0] != second[0]
    assert "".join(found.why.predicted_tokens).endswith("".join(first))


@pytest.mark.parametrize(
    ("why", "other", "said"),
    [
        ("chats", "pomme", "but is 'chats'. The words are 0 le, 1 chat.*'chat'"),
        ("chat", "chat", "The other word must not be 'chat' itself"),
        ("chat", "  ", "The other word must not be"),
        ("9", "chat", "The word to explain must be one of the translation"),
        ("chat", "日本", "cannot write '日本'"),
    ],
)
def test_contrast_refuses_words_that_it_cannot_compare(
    pair: Pair, why: str, other: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        contrast(pair, why, other)


def test_contrast_of_a_repeated_word_wants_its_number(bundle: Bundle) -> None:
    target = "le chat le chat"
    pair = make_pair(bundle, SOURCE, target)
    with pytest.raises(InputError, match=r"occurs 2 times\. Give its number: 1, 3"):
        find_contrast(pair, target, "chat", "pomme")
    first, second = (find_contrast(pair, target, number, "pomme") for number in ("1", "3"))
    assert first.start < second.start


def test_contrast_lists_the_words_once_if_none_is_near(pair: Pair) -> None:
    with pytest.raises(InputError) as caught:
        contrast(pair, "zzz")
    assert str(caught.value).count("chat") == 1
    assert str(caught.value).endswith("Name one of them.")


def test_contrast_needs_the_decoder(pair: Pair) -> None:
    with pytest.raises(InputError, match=r"needs the decoder, but encoder\.0 does not"):
        contrast_measure(contrast(pair), "weights", "encoder.0")


def test_why_is_shown_in_the_terminal(bundle: Bundle, run_here: object, tmp_path: Path) -> None:
    line = (str(bundle.folder), SOURCE, "chat", "--not", "pomme", "--translation", TARGET)
    done = run_here("why", *line, "--measure", "occlusion")  # type: ignore[operator]
    assert done.returncode == 0
    assert done.stdout.startswith("Why chat and not pomme\n")
    assert "occlusion, decoder" in done.stdout
    for options, said in (
        (("--beam", "2"), "--translation cannot be combined with --beam"),
        (("--head", "encoder.0"), "--head needs --measure"),
        (
            ("--measure", "weights", "--head", "encoder.0"),
            "needs the decoder, but encoder.0 does not",
        ),
        (("--measure", "weights:steps=3"), "Only integrated-gradients has steps"),
    ):
        done = run_here("why", *line, *options)  # type: ignore[operator]
        assert (done.returncode, said in done.stderr) == (2, True)


def test_why_in_json_has_what_the_terminal_shows(bundle: Bundle, run_here: object) -> None:
    line = (str(bundle.folder), SOURCE, "chat", "--not", "pomme", "--translation", TARGET)
    done = run_here("why", *line, "--measure", "occlusion", "--json")  # type: ignore[operator]
    found = json.loads(done.stdout)
    assert (found["source"], found["word"]["text"], found["other"]["text"]) == (
        *(SOURCE, "chat"),
        "pomme",
    )
    sums = [sum(found[side]["token_log_probabilities"]) for side in ("word", "other")]
    assert found["difference"] == pytest.approx(sums[0] - sums[1])
    (measure,) = found["measures"]
    assert len(measure["values"]) == len(measure["columns"])
