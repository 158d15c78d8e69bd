"""Evaluation of any language: scripts without spaces, short lines, Unicode forms, references."""

from __future__ import annotations

import unicodedata
from urllib.error import URLError

import pytest
import sacrebleu
from sacrebleu.metrics.ter import TER

from pellucid.config import TokenizerConfig
from pellucid.errors import ConfigurationError, DataError, PellucidError
from pellucid.evaluation.corpus_scores import (
    compare,
    corpus_bleu_score,
    corpus_chrf_score,
    evaluate_corpus,
)
from pellucid.evaluation.form import AS_IT_IS, Form
from pellucid.evaluation.statistics import Scoring
from pellucid.evaluation.tokenization import choose_tokenizer

CHINESE = ["老师今天在公园里看见了一只小狗。", "我的朋友想要一本红色的书。"]
JAPANESE = ["先生は今日公園で子犬を見ました。", "友達は赤い本が欲しいです。"]
THAI = ["วันนี้ครูเห็นลูกสุนัขในสวนสาธารณะ", "เพื่อนของฉันอยากได้หนังสือสีแดง"]
KHMER = ["ថ្ងៃនេះគ្រូបានឃើញកូនឆ្កែនៅក្នុងសួន"]
BURMESE = ["ဆရာသည် ယနေ့ ပန်းခြံတွင် ခွေးကလေးကို တွေ့ခဲ့သည်။"]
KOREAN = ["선생님은 오늘 공원에서 강아지를 보았습니다."]
FRENCH = ["Le maître a vu un chiot dans le parc.", "Mon ami voudrait un livre rouge."]
ARABIC = ["رأى المعلم جروا صغيرا في الحديقة اليوم."]


@pytest.mark.parametrize(
    ("references", "language", "expected"),
    [
        (CHINESE, "", "zh"),
        (CHINESE, "zho_Hant", "zh"),
        (CHINESE, "fr", "zh"),
        (["Microsoft Windows 10"], "zh-CN", "zh"),
        (["请打开 Visual Studio Code 的设置页面"], "", "zh"),
        (["The novel 红楼梦 is known in English as Dream of the Red Chamber."], "", "13a"),
        (JAPANESE, "", "char"),
        (["東京都知事選挙"], "ja", "char"),
        (["東京都知事選挙"], "", "zh"),
        (["ﾃｽﾄ ﾃﾞｰﾀ"], "", "char"),
        (THAI, "", "char"),
        (KHMER, "km", "char"),
        (BURMESE, "", "char"),
        (KOREAN, "", "char"),
        ([unicodedata.normalize("NFD", line) for line in KOREAN], "ko", "char"),
        (FRENCH, "fr", "13a"),
        (FRENCH, "ja", "13a"),
        (ARABIC, "ar", "13a"),
        ([""], "", "13a"),
        (["12 : 30 !"], "", "13a"),
    ],
)
def test_tokenizer_follows_script_and_language(
    references: list[str], language: str, expected: str
) -> None:
    assert choose_tokenizer(references, language, may_use_mecab=False) == expected


@pytest.mark.parametrize("lines", [CHINESE, JAPANESE, THAI, KHMER, BURMESE, KOREAN])
def test_a_perfect_translation_scores_100_in_every_script(lines: list[str]) -> None:
    evaluation = evaluate_corpus(lines, lines, Scoring(num_resamples=3))
    assert evaluation.bleu.score == pytest.approx(100)
    assert evaluation.chrf.score == pytest.approx(100)
    assert corpus_bleu_score(lines, lines) == pytest.approx(100)
    worse = [line[: len(line) // 2] for line in lines]
    assert 0 < corpus_bleu_score(worse, lines) < 80


@pytest.mark.parametrize("lines", [CHINESE, JAPANESE, THAI, KHMER])
def test_ter_of_text_without_spaces_counts_characters(lines: list[str]) -> None:
    worse = [f"{line[:5]}x{line[6:]}" for line in lines]
    evaluation = evaluate_corpus(worse, lines, Scoring(num_resamples=3))
    num_characters = sum(len("".join(line.split())) for line in lines)
    assert evaluation.ter.score == pytest.approx(100 * len(lines) / num_characters)
    assert "|tok:char|" in evaluation.ter.signature
    tokenized = evaluate_corpus(worse, lines, Scoring(is_tokenized=True, num_resamples=3))
    assert tokenized.ter.score == 100
    assert "|tok:tercom|" in tokenized.ter.signature


@pytest.mark.parametrize("lines", [KOREAN, FRENCH, ARABIC])
def test_ter_of_text_with_spaces_counts_words(lines: list[str]) -> None:
    evaluation = evaluate_corpus(lines[::-1], lines, Scoring(num_resamples=3))
    assert evaluation.ter.score == TER().corpus_score(lines[::-1], [lines]).score
    assert "|tok:tercom|" in evaluation.ter.signature


def test_the_signature_names_the_tokenizer() -> None:
    theirs = sacrebleu.corpus_bleu(CHINESE[::-1], [CHINESE], tokenize="zh").score
    chosen = evaluate_corpus(CHINESE[::-1], CHINESE, Scoring(num_resamples=3)).bleu
    assert "|tok:zh|" in chosen.signature
    assert chosen.score == theirs
    given = evaluate_corpus(CHINESE, CHINESE, Scoring(tokenize="char", num_resamples=3)).bleu
    assert "|tok:char|" in given.signature
    compared = compare(
        CHINESE, CHINESE[::-1], CHINESE, Scoring(tokenize="char", num_resamples=3)
    ).bleu
    assert compared.signature == given.signature


@pytest.mark.parametrize(
    ("lines", "is_effective"),
    [
        (["Ouvrir fichier", "Fermer fenêtre masquée"], True),
        (["oui", "non"], True),
        (["开门", "关窗", "看书"], True),
        (["oui", "non", "Le chat dort ici .", "Le chien dort ici ."], False),
    ],
)
def test_short_lines_are_scored_by_the_effective_order(
    lines: list[str], is_effective: bool
) -> None:
    bleu = evaluate_corpus(lines, lines, Scoring(num_resamples=3)).bleu
    assert bleu.score == pytest.approx(100)
    assert f"|eff:{'yes' if is_effective else 'no'}|" in bleu.signature
    if is_effective:
        assert bleu.low == pytest.approx(100)
        wrong = evaluate_corpus(lines[::-1], lines, Scoring(num_resamples=3)).bleu
        assert wrong.score < 50


def test_an_unknown_tokenizer_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigurationError, match=r"'jamecab'.*Did you mean 'ja-mecab'\?"):
        evaluate_corpus(["a"], ["a"], Scoring(tokenize="jamecab"))
    with pytest.raises(ConfigurationError, match="is_tokenized cannot be combined with tokenize"):
        evaluate_corpus(["a"], ["a"], Scoring(tokenize="char", is_tokenized=True))


def test_a_tokenizer_that_cannot_be_downloaded_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sacrebleu.tokenizers import tokenizer_spm

    def refuse(*_: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(tokenizer_spm, "download_file", refuse)
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", "nowhere")
    with pytest.raises(PellucidError, match=r"flores200 needs a vocabulary .*no network") as caught:
        evaluate_corpus(["a"], ["a"], Scoring(tokenize="flores200"))
    assert caught.value.exit_code == 1


VIETNAMESE = ["Tôi muốn một quyển sách màu đỏ.", "Thầy giáo nhìn thấy một con chó nhỏ."]
YORUBA = ["Ọ̀rẹ́ mi fẹ́ ìwé pupa kan lónìí.", "Olùkọ́ rí ajá kékeré kan nínú ọgbà."]
HEBREW = ["הַמּוֹרֶה רָאָה כֶּלֶב קָטָן בַּפַּארְק הַיּוֹם", "חָבֵר שֶׁלִּי רוֹצֶה סֵפֶר אָדֹם"]


@pytest.mark.parametrize("lines", [VIETNAMESE, YORUBA, HEBREW, KOREAN])
def test_unicode_forms_do_not_matter(lines: list[str]) -> None:
    composed = [unicodedata.normalize("NFC", line) for line in lines]
    decomposed = [unicodedata.normalize("NFD", line) for line in lines]
    # Marks in the order of typing.
    shuffled = [line.replace("\u0323\u0300", "\u0300\u0323") for line in decomposed]
    for references in (decomposed, shuffled):
        evaluation = evaluate_corpus(composed, references, Scoring(num_resamples=3))
        for score, best in ((evaluation.bleu, 100), (evaluation.chrf, 100), (evaluation.ter, 0)):
            assert score.score == pytest.approx(best)
            assert score.signature.endswith("|form:nfc") == (composed != references)
        assert corpus_chrf_score(references, composed) == pytest.approx(100)
        if composed != references:
            assert evaluation.normalized is not None
            assert evaluation.normalized.references == len(lines)
            assert evaluation.normalized.hypotheses == 0


def test_as_it_is_compares_bytes_and_says_nothing() -> None:
    decomposed = [unicodedata.normalize("NFD", line) for line in VIETNAMESE]
    evaluation = evaluate_corpus(VIETNAMESE, decomposed, Scoring(form=AS_IT_IS, num_resamples=3))
    assert evaluation.bleu.score < 20
    assert evaluation.normalized is None
    assert "form:" not in evaluation.bleu.signature


@pytest.mark.parametrize(
    ("settings", "name", "hypothesis", "reference"),
    [
        ({"normalization": "nfkc"}, "nfkc", "Il coûte 5 km\u00b2 !", "Il coûte 5 km2\u00a0!"),
        ({"normalization": "nfkc"}, "nfkc", "データ と ABC を 見る", "ﾃﾞｰﾀ と ＡＢＣ を 見る"),
        (
            {"kind": "words", "lowercase": True},
            "nfc+lc",
            "le chat d' anna dort",
            "Le Chat d' ANNA dort",
        ),
        (
            {"kind": "words", "lowercase": True, "drop_punctuation": True},
            "nfc+lc+nopunct",
            "le chat dort ici",
            "«\u00a0Le chat dort ici !\u00a0»",
        ),
        (
            {"normalization": "none"},
            "nfc",
            "été comme hiver ici",
            "e\u0301te\u0301 comme hiver ici",
        ),
    ],
)
def test_the_form_of_a_model_is_that_of_its_tokenizer(
    settings: dict[str, object], name: str, hypothesis: str, reference: str
) -> None:
    form = Form.of_model(TokenizerConfig.model_validate(settings))
    assert str(form) == name
    evaluation = evaluate_corpus([hypothesis], [reference], Scoring(form=form, num_resamples=3))
    assert evaluation.bleu.score == pytest.approx(100)
    assert evaluation.bleu.signature.endswith(f"|form:{name}")
    assert form.apply(form.apply([reference])) == form.apply([reference])


def test_several_references_equal_sacrebleu() -> None:
    hypotheses = ["Le maître a vu un petit chien dans le parc.", "Mon ami veut un livre rouge ."]
    others = ["Le professeur a vu un petit chien au parc.", "Mon ami veut un bouquin rouge."]
    evaluation = evaluate_corpus(hypotheses, [FRENCH, others], Scoring(num_resamples=7))
    assert evaluation.bleu.score == sacrebleu.corpus_bleu(hypotheses, [FRENCH, others]).score
    assert evaluation.chrf.score == sacrebleu.corpus_chrf(hypotheses, [FRENCH, others]).score
    assert evaluation.ter.score == TER().corpus_score(hypotheses, [FRENCH, others]).score
    assert evaluation.bleu.signature.startswith("nrefs:2|")
    assert evaluate_corpus(
        others, [FRENCH, others], Scoring(num_resamples=7)
    ).bleu.score == pytest.approx(100)
    compared = compare(hypotheses, others, [FRENCH, others], Scoring(num_resamples=7))
    assert compared.bleu.score == evaluation.bleu.score
    assert compared.bleu.signature == evaluation.bleu.signature


def test_a_missing_second_reference_leaves_the_first() -> None:
    first = ["Un chien noir court vite.", "Un chat gris dort ici."]
    both = evaluate_corpus(first, [first, ["Le chien noir court.", " "]], Scoring(num_resamples=3))
    assert both.ter.score == 0
    assert both.bleu.signature.startswith("nrefs:var|")
    long = [" ".join(str(number) for number in range(1009))] * 2
    evaluation = evaluate_corpus(long, [long, [long[0], ""]], Scoring(num_resamples=2))
    assert evaluation.ter.score == 0
    assert "|noshift:2|" in evaluation.ter.signature


def test_references_of_other_lengths_are_named() -> None:
    with pytest.raises(DataError, match="2 hypotheses and 2 references 1 and 1 references 2"):
        evaluate_corpus(["a", "b"], [["a", "b"], ["c"]])
