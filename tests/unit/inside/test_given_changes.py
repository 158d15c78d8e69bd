"""Changes mean the same wherever they are given: as text, as a change, as a probe, or several."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pellucid
from pellucid.errors import InputError
from pellucid.inside import CutHead, Replace, ReplaceWeights, decoder_lens, parse_change
from pellucid.translate.translator import Translator

TEXT = "The pizza came out of the oven and it tasted good."
CUT = "cut decoder.1.cross.0"


class ByHand:
    """Cuts the head of `CUT`, as a probe of one's own."""

    sites = ("decoder.1.cross",)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) != ("decoder.1.cross", "context"):
            return None
        changed = tensor.clone()
        changed[:, 0] = 0
        return changed


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


SPELLINGS: dict[str, Any] = {
    "text": CUT,
    "change": parse_change(CUT),
    "class": CutHead("decoder.1.cross.0"),  # type: ignore[arg-type]
    "probe": ByHand(),
    "list": [CUT],
    "tuple": (parse_change(CUT),),
    "probes": [ByHand()],
    "mixed": [Replace({"decoder.1.cross.weights": torch.Tensor.clone}), CUT],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_change_has_one_effect_everywhere(
    demo: Translator, spelling: str
) -> None:
    changes = SPELLINGS[spelling]
    pair = demo.pair(TEXT)
    logs = [pair.log_probabilities(probe=one).sum() for one in (ByHand(), None)]
    effect = float(logs[0] - logs[1])
    assert effect < -0.5
    found = pair.what_if(changes)
    assert found.effect == pytest.approx(effect, abs=0.01)
    assert demo.translate([TEXT], changes=changes)[0].text == found.after.text
    assert demo.changed(changes).translate([TEXT])[0].text == found.after.text
    plain, changed = (
        demo.score([TEXT], [found.original.text], changes=one)[0].log_probability
        for one in (None, changes)
    )
    assert changed - plain == pytest.approx(effect, abs=0.01)
    for logs in (
        pair.log_probabilities(probe=changes),
        demo.pair(TEXT, changes=changes).log_probabilities(),
    ):
        assert float(logs.sum()) - found.original.log_probability == pytest.approx(effect, abs=0.01)
    trace = demo.look(TEXT, everything=True, changes=changes)
    assert not trace["decoder.1.cross.0.context"].any()
    assert sum(trace.log_probabilities) == pytest.approx(float(logs.sum()), abs=1e-3)


def test_several_changes_act_in_their_order(demo: Translator) -> None:
    matrix = np.zeros((99, 99))
    matrix[:, 1] = 1
    force = ReplaceWeights("decoder.1.cross.0", matrix)  # type: ignore[arg-type]
    last = demo.look(TEXT, changes=["force decoder.1.cross.0:0>3=1", force])
    first = demo.look(TEXT, changes=[force, "force decoder.1.cross.0:0>3=1"])
    assert last["decoder.1.cross.0"][0].argmax() == 1
    assert first["decoder.1.cross.0"][0].argmax() == 3


def test_look_of_a_changed_translator_decodes_under_the_changes(demo: Translator) -> None:
    own = "La pizza est sortie du four et elle avait bon goût."
    cut = "cut decoder.1.cross.*"
    under = demo.changed(cut).look(TEXT)
    assert under.decoding["text"] == demo.translate(TEXT, changes=cut).text != own
    assert under.decoding["changes"] == cut
    assert under.problems == ()
    assert under.checks["decode"] < 1e-4
    without = demo.look(TEXT, changes=cut)
    assert without.decoding["text"] == own
    # Also with a change that no model without it can make, and on top of another change.
    slow = demo.changed("average decoder.0.cross.1").changed(CUT).look(TEXT)
    assert slow.decoding["changes"] == f"average decoder.0.cross.1, {CUT}"
    assert slow.problems == ()


def test_pair_of_a_changed_translator_is_measured_without_the_head(demo: Translator) -> None:
    norms = demo.changed(CUT).pair(TEXT).measure("norms", "decoder.1.cross.0")
    assert not norms.matrix.any()
    assert demo.pair(TEXT).measure("norms", "decoder.1.cross.0").matrix.any()
    assert not demo.pair(TEXT, changes=CUT).measure("norms", "decoder.1.cross.0").matrix.any()
    with pytest.raises(InputError, match="alti takes cuts of whole heads only"):
        demo.pair(TEXT, changes="average decoder.1.cross.0").measure("alti")


def test_changed_pair_stays_changed_in_every_explanation(demo: Translator) -> None:
    own = demo.translate(TEXT).text
    by_probe = demo.pair(TEXT, own, changes=CUT)
    by_weights = demo.changed(CUT).pair(TEXT, own)
    one, other = (pair.why("elle", other="il") for pair in (by_probe, by_weights))
    assert one.difference == pytest.approx(other.difference, abs=1e-3)
    for hidden, again in zip(one.hidden, other.hidden, strict=True):
        assert (hidden.word, hidden.text) == (again.word, again.text)
        assert hidden.fall == pytest.approx(again.fall, abs=1e-3, nan_ok=True)
    change = "average decoder.1.cross.*"
    written = decoder_lens(demo.pair(TEXT, own, changes=change))[-1].written
    assert written is not None
    assert written.text == demo.translate(TEXT, changes=change).text != own


def test_words_are_changed_where_there_is_one_sentence(demo: Translator) -> None:
    pair = demo.pair(TEXT)
    cut = pair.what_if("cut word pizza")
    plain = float(pair.log_probabilities().sum())
    assert cut.effect == pytest.approx(sum(cut.under_change) - plain, abs=1e-3)
    assert cut.effect < -5
    under = demo.look(TEXT, changes="cut word pizza")
    assert sum(under.log_probabilities) == pytest.approx(sum(cut.under_change), abs=1e-3)
    # In many sentences the word is found in each: test_changes_of_lines.py.
    assert demo.translate([TEXT], changes="cut word pizza")[0].text == cut.after.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("cut decoder.1.croos.0", "Did you mean 'cross'"),
        ("cut decoder.7.cross.0", "A layer must be from 0 to 1"),
        ([], "No change was given"),
        (3, "changes must be a text such as 'cut decoder.1.cross.0', a Change, a probe"),
        ([CUT, 3], "changes must be a text"),
        (ByHand, "changes must be a text"),
        (b"cut", "changes must be a text"),
    ],
)
def test_what_is_no_change_is_refused_alike(demo: Translator, changes: Any, message: str) -> None:
    for call in (
        lambda: demo.look(TEXT, changes=changes),
        lambda: demo.pair(TEXT, changes=changes),
        lambda: demo.changed(changes),
        lambda: demo.pair(TEXT).what_if(changes),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_why_is_the_same_by_all_its_ways(demo: Translator) -> None:
    pair = demo.pair(TEXT)
    found = [
        pair.why("elle", other="il"),
        demo.why(TEXT, "elle", other="il"),
        pair.why("elle", "il"),
    ]
    differences = {round(one.difference, 6) for one in found}
    assert differences == {round(found[0].difference, 6)}
    said, *hidden = str(found[0]).splitlines()
    said_by_all = f"elle and not il: {found[0].difference:.2f} nats"
    assert found[0].difference > 1
    assert said == said_by_all
    assert [line.split()[0] for line in hidden] == [one.word for one in found[0].hidden]
    (pizza,) = (one for one in found[0].hidden if one.word == "pizza")
    assert any(re.match(rf"pizza +\+{pizza.fall:.2f}  {pizza.text}", line) for line in hidden)
    largest = found[0].measure().source_matrix[0].argmax()
    assert pair.source_tokens[largest] == "pizza"
    assert repr(found[0]) == f"<Contrast of {said_by_all.replace('not ', '')}>"
    # Without another word, the one that the model finds likeliest after it.
    assert demo.why(TEXT, "elle").words == ("elle", "il")


def test_pair_takes_a_translation_or_makes_one(demo: Translator) -> None:
    own = demo.pair(TEXT)
    assert own.target_ids == demo.look(TEXT).predicted_ids
    given = demo.pair(TEXT, "La pizza était bonne.")
    assert "".join(given.predicted_tokens).startswith("La")
    assert given.target_ids != own.target_ids
    with pytest.raises(InputError, match="beam cannot be combined with translation"):
        demo.pair(TEXT, "La pizza.", beam=2)
    assert repr(own).startswith("<Pair: The pizza came out of the oven and it … → La pizza est")
    assert "\n" not in repr(own)
    assert len(repr(own)) < 120


def test_patch_of_a_pair_puts_the_others_vectors_in(demo: Translator) -> None:
    cake = demo.pair("The cake came out of the oven and it tasted good.")
    map_ = cake.patch(demo.pair(TEXT), ["encoder.0"], row=0)
    assert map_.matrix[0, -1] == pytest.approx(1, abs=0.05)


def test_unknown_words_of_a_translation_are_named_as_a_reader_sees_them(demo: Translator) -> None:
    with pytest.raises(InputError) as caught:
        demo.why("Kitten", "Le")
    assert "\ufdd0" not in str(caught.value)
    assert "<unk>" in str(caught.value)


def test_probe_that_replaces_nothing_is_said_while_translating_and_scoring() -> None:
    class Misspelled:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            return tensor * 0 if f"{site}.{stage}" == "encoder.0.self.weigths" else None

    translator = pellucid.load("demo")
    with pytest.warns(UserWarning, match="The probe replaced nothing"):
        translator.translate("The dog ate it.", changes=Misspelled())
    with pytest.warns(UserWarning, match="The probe replaced nothing"):
        translator.score("The dog ate it.", "Le chien.", changes=Misspelled())
