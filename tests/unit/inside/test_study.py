"""A study of heads: cuts equal replays, tables equal computations by hand, and studies continue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_recurrent import save_recurrent
from small_words import make_words_bundle

import pellucid
from pellucid.bundle import load_bundle
from pellucid.corpora import make_split
from pellucid.errors import DataError, InputError
from pellucid.evaluation.corpus_scores import corpus_bleu_score
from pellucid.evaluation.word_links import GoldLinks, count_links, score_counts
from pellucid.inside import Pair, Study, study
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View, all_views
from pellucid.inside.changes.change import Changes, CutHead, parse_change
from pellucid.inside.changes.cutting import cut_model
from pellucid.inside.changes.place import all_heads, parse_place
from pellucid.inside.changes.what_if import decode_under
from pellucid.inside.heads.head_rows import cut_effects
from pellucid.inside.measures.lens import logit_lens
from pellucid.inside.measures.registry import MEASURES
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.inside.studies.head_study import StudyTable
from pellucid.inside.studies.kept_steps import Steps
from pellucid.inside.studies.line_figures import RULES
from pellucid.translate.translator import Translator

NUM_LINES = 5


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return [(one.source, one.target) for one in make_split("test", count=NUM_LINES)]


@pytest.fixture(scope="module")
def golds() -> list[GoldLinks]:
    found = [frozenset(one.alignment) for one in make_split("test", count=NUM_LINES)]
    return [GoldLinks(links, links) for links in found]


@pytest.fixture(scope="module")
def found(demo: Translator, pairs: list[tuple[str, str]], golds: list[GoldLinks]) -> Study:
    sources, targets = zip(*pairs, strict=True)
    return study(demo.bundle, sources, targets, golds=golds, num_measured=2)


def test_cuts_of_a_study_equal_those_of_replays(
    demo: Translator, pairs: list[tuple[str, str]], found: Study
) -> None:
    bundle = demo.bundle
    both = [make_pair(bundle, *pair) for pair in pairs]
    effects = [cut_effects(pair) for pair in both]
    limits = [2 * len(pair.source_ids) + 20 for pair in both]
    before = [
        decode_under(pair, None, max_length=limit).text
        for pair, limit in zip(both, limits, strict=True)
    ]
    targets = [target for _, target in pairs]
    unchanged = corpus_bleu_score(before, targets)
    for row, name in enumerate(found.heads.rows):
        head = parse_place(name)
        mean = np.mean([one[head] for one in effects])
        assert found.heads.column("cut_log_probability")[row] == pytest.approx(mean, abs=1e-3)
        if row % 5 and name != "decoder.1.self.1":  # decoding again takes long
            continue
        after = [
            decode_under(pair, Changes(CutHead(head)), max_length=limit).text
            for pair, limit in zip(both, limits, strict=True)
        ]
        changed = [i for i in range(NUM_LINES) if after[i] != before[i]]
        assert found.changed[name] == tuple(changed)
        assert found.heads.column("cut_lines")[row] == len(changed)
        difference = corpus_bleu_score(after, targets) - unchanged
        assert found.heads.column("cut_bleu")[row] == pytest.approx(difference)
        telling = found.telling[name]
        worst = min(range(NUM_LINES), key=lambda i: effects[i][head])
        assert telling[0]["line"] == worst
        assert {one["line"]: one["cut"] for one in telling} == dict(enumerate(after))
    assert found.bleu == pytest.approx(unchanged)
    assert any(found.changed.values())


def test_figures_of_a_study_equal_sums_by_hand(
    demo: Translator, pairs: list[tuple[str, str]], found: Study
) -> None:
    traces = [replay(make_pair(demo.bundle, *pair)) for pair in pairs]
    for row, name in enumerate(found.heads.rows):
        place = parse_place(name)
        maps = [t.arrays[f"{name.rpartition('.')[0]}.weights"][place.head] for t in traces]
        by_hand: dict[str, list[float]] = {name: [] for name in found.heads.columns[:8]}
        for weights_LM in maps:
            rows, keys = weights_LM.shape
            for label, offset in (("previous", -1), ("same", 0), ("next", 1)):
                onto = [weights_LM[i, i + offset] for i in range(rows) if 0 <= i + offset < keys]
                by_hand[label].append(np.mean(onto))
            by_hand["first"].append(weights_LM[:, 0].mean())
            by_hand["end"].append(weights_LM[:, keys - 1].mean())
            by_hand["entropy"].append(
                np.mean([-sum(w * np.log(w) for w in one if w > 0) for one in weights_LM])
            )
            by_hand["confidence"].append(weights_LM.max(axis=1).mean())
            far = [sum(weights_LM[i, j] * abs(i - j) for j in range(keys)) for i in range(rows)]
            by_hand["distance"].append(np.mean(far))
        for column, (label, values) in enumerate(by_hand.items()):
            got = found.heads.values[row, column]
            if (place.part, place.kind) == ("decoder", "self") and label in ("next", "end"):
                assert np.isnan(got)
            else:
                assert got == pytest.approx(np.mean(values), abs=1e-5), (name, label)


def test_errors_of_a_study_equal_those_of_views(
    demo: Translator, pairs: list[tuple[str, str]], golds: list[GoldLinks], found: Study
) -> None:
    bundle = demo.bundle
    views = all_views(bundle.model.config, maps=("head",))
    sources, targets = zip(*pairs, strict=True)
    aligned = align_pairs(bundle.model, bundle.tokenizer, sources, targets, views)
    counts = np.array(
        [
            [count_links(links, gold) for links in one.links]
            for one, gold in zip(aligned, golds, strict=True)
        ]
    )
    for view, score in zip(views, score_counts(counts, num_resamples=2), strict=True):
        row = found.heads.rows.index(f"decoder.{view.layer}.cross.{view.head}")
        got = found.heads.column(f"error_{view.convention}")[row]
        assert got == pytest.approx(score.error)
    selves = [row for row, name in enumerate(found.heads.rows) if ".self." in name]
    assert np.isnan(found.heads.column("error_reads")[selves]).all()


def test_lens_of_a_study_counts_what_the_lens_ranks_first(
    demo: Translator, pairs: list[tuple[str, str]], found: Study
) -> None:
    lenses = [logit_lens(make_pair(demo.bundle, *pair)) for pair in pairs]
    for depth in range(len(lenses[0])):
        ranks = [rank for lens in lenses for rank in lens[depth].ranks]
        assert found.lens.values[depth, 0] == pytest.approx(ranks.count(0) / len(ranks))
    assert found.lens.axes == ("layers", "figure")


def test_measures_of_a_study_are_all_compared(
    demo: Translator, pairs: list[tuple[str, str]], golds: list[GoldLinks], found: Study
) -> None:
    assert found.measures.rows == tuple(MEASURES)
    assert (found.measures.column("milliseconds") > 0).all()
    row = found.measures.rows.index("occlusion")
    assert found.measures.column("occlusion")[row] == pytest.approx(1)
    errors = found.measures.column("error_best")
    assert ((errors >= 0) & (errors <= 1)).all()
    view = View(1, "layer-mean", None, "predicts")
    some = [pairs[0], pairs[-1]]
    sources, targets = zip(*some, strict=True)
    bundle = demo.bundle
    for rule in RULES:
        aligned = align_pairs(bundle.model, bundle.tokenizer, sources, targets, [view], rule=rule)
        counts = [
            [count_links(one.links[0], gold)]
            for one, gold in zip(aligned, (golds[0], golds[-1]), strict=True)
        ]
        (score,) = score_counts(np.array(counts), num_resamples=2)
        got = found.measures.column(f"error_{rule}")[found.measures.rows.index("weights")]
        assert got == pytest.approx(score.error)


class StoppedError(Exception):
    """Ends a study on the way."""


def test_study_that_was_interrupted_continues_with_what_is_missing(
    demo: Translator, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    kept, sources = tmp_path / "kept", [source for source, _ in pairs]

    def stop(what: str, done: int, total: int) -> None:
        if done == 4:
            raise StoppedError

    with pytest.raises(StoppedError):
        study(demo.bundle, sources, kept=kept, on_step=stop)
    done = kept.read_text(encoding="utf-8").splitlines()
    assert len(done) == 1 + 4, done
    kept.write_text("\n".join([*done[:4], done[4][:-9]]), encoding="utf-8")  # cut short
    whole = study(demo.bundle, sources)
    again = study(demo.bundle, sources, kept=kept)
    assert kept.read_text(encoding="utf-8").splitlines()[:4] == done[:4]
    assert again.record() == whole.record()


def test_kept_values_of_another_study_are_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    assert Steps(path, "one").take("a", lambda: 1) == 1
    assert Steps(path, "one").take("a", lambda: 2) == 1
    assert Steps(path, "another").take("a", lambda: 2) == 2


def test_study_without_targets_takes_the_models_own(
    demo: Translator, pairs: list[tuple[str, str]]
) -> None:
    sources = [source for source, _ in pairs]
    found = study(
        demo.bundle,
        sources,
        heads=["decoder.1.self.1", "decoder.1.cross.1", "encoder.0.self.2"],
    )
    assert found.heads.rows == ("encoder.0.self.2", "decoder.1.self.1", "decoder.1.cross.1")
    assert found.bleu == pytest.approx(100)
    own = [one.text for one in demo.translate(sources, beam=1, precision="float32")]
    assert {one["line"]: one["target"] for one in found.telling["encoder.0.self.2"]} == dict(
        enumerate(own)
    )


@pytest.mark.parametrize("form", ["additive", "dot"])
def test_study_of_a_recurrent_model_has_its_one_head(form: str, tmp_path: Path) -> None:
    bundle = load_bundle(save_recurrent(tmp_path / form, form))
    sources = ["The pizza came out of the oven .", "It tasted good ."]
    targets = ["La pizza est sortie .", "Elle avait bon goût ."]
    found = study(bundle, sources, targets)
    assert found.heads.rows == ("decoder.0.cross.0",)
    assert not found.lens.rows
    assert "no layers" in found.notes[0]
    both = [
        make_pair(bundle, *p)
        for p in zip(sources, ("La pizza est sortie .", "Elle avait bon goût ."), strict=True)
    ]
    mean = np.mean([sum(cut_effects(pair).values()) for pair in both])
    assert found.heads.column("cut_log_probability")[0] == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"projections": "qk", "d_value": 5}])
def test_cut_model_equals_the_replay_of_the_cut(tmp_path: Path, changes: dict[str, object]) -> None:
    bundle = load_bundle(make_words_bundle(tmp_path / "words", **changes))
    pair = make_pair(bundle, "The pizza came out of the oven .", "La pizza est sortie du four .")
    before = pair.log_probabilities()
    for head in all_heads(bundle.model.config):
        model = cut_model(bundle.model, [head])
        cut = Pair(model, pair.tokenizer, pair.source_ids, pair.target_ids).log_probabilities()
        replayed = pair.log_probabilities(probe=Changes(CutHead(head)))
        assert np.allclose(cut, replayed, atol=1e-5), head
        shared = dict(bundle.model.named_parameters())
        same = [one is shared[name] for name, one in model.named_parameters()]
        assert same.count(False) == 1
    every = cut_model(bundle.model, [parse_place("decoder.*.cross.*")])
    assert not every.get_submodule("decoder.layers.1.cross_attention.output").weight.any()
    assert np.array_equal(before, pair.log_probabilities())


def test_study_refuses_what_is_missing_in_one_sentence(
    demo: Translator, pairs: list[tuple[str, str]], golds: list[GoldLinks]
) -> None:
    bundle, sources, targets = demo.bundle, *map(list, zip(*pairs, strict=True))
    with pytest.raises(InputError, match="Gold links need the targets"):
        study(bundle, sources, golds=golds)
    with pytest.raises(InputError, match="Measures are compared with gold links"):
        study(bundle, sources, targets, num_measured=2)
    with pytest.raises(DataError, match="targets for each of 5 sources, but there are 4"):
        study(bundle, sources, targets[:-1])
    with pytest.raises(InputError, match="head must be from 0 to 3"):
        study(bundle, sources, heads=["decoder.0.cross.4"])
    with pytest.raises(InputError, match="No line can be studied"):
        study(bundle, ["", " "])


def test_study_of_too_little_memory_is_refused_before_anything_is_computed(
    demo: Translator, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.inside.pair.available_memory", lambda device: 1000)
    with pytest.raises(InputError, match="A study must fit into"):
        study(demo.bundle, [source for source, _ in pairs])


def test_study_leaves_out_bad_lines_and_names_them(demo: Translator) -> None:
    found = study(demo.bundle, ["The soup was cold.", ""], heads=["decoder.1.self.1"])
    assert found.num_lines == 1
    assert found.left_out == ("line 2: The line is empty. Write a sentence in it.",)


def test_translator_under_changes_writes_what_the_replay_writes(demo: Translator) -> None:
    sources = [one.source for one in make_split("test", count=3)]
    for text in ("cut decoder.1.self.1", "average decoder.1.cross.*"):
        changes = Changes(parse_change(text))
        changed = demo.translate(sources, changes=text, beam=1)
        scored = demo.score(sources, [one.text for one in changed], changes=[text])
        for source, one, score in zip(sources, changed, scored, strict=True):
            ids = one.hypotheses[0].ids
            pair = make_pair(demo.bundle, source, ids)
            assert decode_under(pair, changes, max_length=len(ids)).text == one.text
            log = float(pair.log_probabilities(probe=changes).sum())
            assert one.log_probability == pytest.approx(log, abs=1e-3)
            given = make_pair(demo.bundle, source, one.text)
            log = float(given.log_probabilities(probe=changes).sum())
            assert score.log_probability == pytest.approx(log, abs=1e-3)
    assert demo.translate(sources) != demo.translate(sources, changes="cut decoder.1.self.1")
    assert (
        len(
            demo.translate(sources[:1], changes="cut decoder.1.self.1", beam=2, n_best=2)[
                0
            ].hypotheses
        )
        == 2
    )


def test_study_takes_a_translator(demo: Translator) -> None:
    texts = ["The soup was cold."]
    assert study(demo, texts).record() == study(demo.bundle, texts).record()
    with pytest.raises(InputError, match="model must be a Translator or its bundle, but is 'demo'"):
        study("demo", texts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a changed model"):
        study(demo.changed("cut decoder.0.cross.0"), texts)


def test_translator_under_changes_refuses_what_it_cannot_do(demo: Translator) -> None:
    with pytest.raises(InputError, match="head must be from 0 to 3"):
        demo.changed("cut decoder.0.cross.9")
    with pytest.raises(InputError, match="text such as"):
        demo.changed([3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="a changed model"):
        demo.changed("cut decoder.0.cross.0").bundle  # noqa: B018


def test_every_column_of_a_table_has_one_form_of_numbers() -> None:
    values = np.array([[17, -6.93, 1.0], [0, 0.0, 0.25], [2, np.nan, 0.0]])
    table = StudyTable("heads", ("head", "figure"), ("a", "b", "c"), ("lines", "log", "x"), values)
    assert table.cells([1, 0, 2])[1:] == [
        ["b", "0", "0.000", "0.250"],
        ["a", "17", "−6.930", "1.000"],
        ["c", "2", "–", "0.000"],
    ]
    shown = table._repr_html_()
    assert [one for one in ("17", "−6.930", "1.000", "0.250") if f">{one}<" not in shown] == []
