"""A plain `nn.Transformer` of PyTorch becomes a bundle that computes the same."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_course import Course, D, tokens_of, write_course

import pellucid
from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import BundleError, ConfigurationError, InputError, PellucidError

CASES: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm_first": True},
    "batch first, learned": {"batch_first": True, "positions": "learned", "scale": False},
    "pre, batch first, gelu": {"norm_first": True, "batch_first": True, "activation": "gelu"},
    "computed sines, tied": {"positions": "sinusoidal", "is_tied": True},
    "without biases": {"bias": False},
}


def convert(folder: Path, out: str = "ours") -> Bundle:
    made = pellucid.convert(
        folder / "checkpoint.pt",
        folder / out,
        format="nn-transformer",
        config=folder / "description.toml",
    )
    return load_bundle(made.model)


def largest_difference(bundle: Bundle, theirs: Course) -> float:
    numbers = torch.Generator().manual_seed(3)
    found = []
    for source_length, target_length in ((7, 5), (1, 11), (13, 2)):
        source = torch.randint(4, 10, (3, source_length), generator=numbers)
        target = torch.randint(4, 10, (3, target_length), generator=numbers)
        expected = theirs(source, target).log_softmax(-1)
        found.append((bundle.model(source, target).log_softmax(-1) - expected).abs().max())
    return float(max(found).detach())


@pytest.mark.parametrize("case", CASES)
def test_bundle_computes_what_pytorch_does(case: str, tmp_path: Path) -> None:
    theirs = write_course(tmp_path, **CASES[case])
    bundle = convert(tmp_path)
    assert largest_difference(bundle, theirs) < 1e-5
    config = bundle.config.model
    assert config.stack_norm == (not CASES[case].get("norm_first", False))
    assert config.tied_embeddings == ("decoder" if "tied" in case else "none")
    assert bundle.manifest["imported"]["format"] == "nn-transformer"
    assert bundle.config.languages.source == "de"


@pytest.mark.parametrize("norm_first", [False, True])
def test_translation_is_their_greedy_search(tmp_path: Path, norm_first: bool) -> None:
    theirs = write_course(tmp_path, norm_first=norm_first)
    bundle = convert(tmp_path)
    translator = pellucid.load(bundle.folder)
    # The engine in C computes the norm after the last layer too.
    assert translator.decoder.find_reason(translator.options()) is None
    source = tokens_of("source")
    for text in ("ein hund frisst .", "der apfel , der rot ist", "ein vogel frisst"):
        ids = [*(source.index(one) if one in source else 0 for one in text.split()), 3]
        assert bundle.tokenizer.encode_source(text) == ids
        written = [2]
        while len(written) < 9 and written[-1] != 3:
            logits = theirs(torch.tensor([ids]), torch.tensor([written]))[0, -1]
            logits[[1, 2]] = -torch.inf  # Pellucid never writes padding and the start token.
            written.append(int(logits.argmax()))
        found = translator.translate(text, max_length=8)
        assert list(found.ids[: len(written) - 1]) == written[1:]
        words = [tokens_of("target")[id_] for id_ in found.ids if id_ != 3]
        assert found.text == " ".join(words)


def test_sources_may_begin_with_the_start_token(tmp_path: Path) -> None:
    theirs = write_course(tmp_path)
    plain = convert(tmp_path, "plain")
    change(tmp_path / "description.toml", "source_start = false", "source_start = true")
    bundle = convert(tmp_path)
    text = "ein hund frisst ."
    tokenizer = bundle.tokenizer
    ids = [2, *plain.tokenizer.encode_source(text)]
    assert tokenizer.encode_source(text) == tokenizer.encode_sources([text])[0] == ids
    assert tokenizer.encode_target("a dog eats") == plain.tokenizer.encode_target("a dog eats")
    written = [2]
    while len(written) < 9 and written[-1] != 3:
        logits = theirs(torch.tensor([ids]), torch.tensor([written]))[0, -1]
        logits[[1, 2]] = -torch.inf
        written.append(int(logits.argmax()))
    translator = pellucid.load(bundle.folder)
    found = translator.translate(text, max_length=8)
    assert list(found.ids[: len(written) - 1]) == written[1:]
    trace = translator.look(text, max_length=8)
    assert trace.source_ids == tuple(ids)
    assert trace.checks["decode"] < 1e-4
    linked = translator.align(text, "a dog eats")
    assert linked.source_words == tuple(text.split())
    assert all(0 <= one < len(linked.source_words) for one, _ in linked.alignment)


def test_characters_are_cut_one_by_one(tmp_path: Path) -> None:
    theirs = write_course(tmp_path, kind="characters")
    bundle = convert(tmp_path)
    assert largest_difference(bundle, theirs) < 1e-5
    tokens = tokens_of("source", "characters")
    text = "ein  hund"
    assert bundle.tokenizer.encode_source(text) == [*map(tokens.index, text), 3]
    target = "a dog  eats"
    assert bundle.tokenizer.decode_target(bundle.tokenizer.encode_target(target)) == target


def test_vocabulary_without_an_unknown_token_gets_one_that_is_never_written(tmp_path: Path) -> None:
    theirs = write_course(tmp_path)
    path = tmp_path / "description.toml"
    change(path, "[vocabulary]", '[vocabulary]\nunknown = ""')
    for name in ("source.txt", "target.json"):
        change(tmp_path / name, "<unk>", "<unused>")
    bundle = convert(tmp_path)
    ids = torch.tensor([[4, 5, 3]])
    found = bundle.model(ids, ids).log_softmax(-1)
    expected = theirs(ids, ids).log_softmax(-1)
    size = expected.shape[-1]
    assert float((found[..., :size] - expected).abs().max()) < 1e-5
    assert float(found[..., size:].max()) < -1000
    assert bundle.tokenizer.encode_source("ein vogel") == [4, size, 3]
    change(tmp_path / "source.txt", "apfel\n", "")
    with pytest.raises(ConfigurationError, match="must have the 14 tokens"):
        convert(tmp_path, "again")


# The draft


def run(*given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pellucid", "convert", *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_command_writes_a_draft_and_then_the_bundle(tmp_path: Path) -> None:
    theirs = write_course(tmp_path)
    draft = tmp_path / "draft.toml"
    given = (
        *(str(tmp_path / "checkpoint.pt"), "--format", "nn-transformer"),
        *("--config", str(draft), "-o", str(tmp_path / "ours")),
    )
    done = run(*given)
    assert done.returncode == 2
    assert f"A draft of it is in {draft}" in done.stderr
    assert not (tmp_path / "ours").exists()
    text = draft.read_text(encoding="utf-8")
    for role, name in (
        ("source_embedding", "src_tok_emb.weight"),
        ("target_embedding", "tgt_tok_emb.weight"),
        ("output", "generator.weight"),
        ("source_positions", "positional_encoding.pos_embedding"),
    ):
        assert f'{role} = "{name}"' in text
    assert "3 + 2 layers of width 34" in text
    # What is not filled in is refused by its name.
    done = run(*given)
    assert done.returncode == 2
    assert "model.num_heads" in done.stderr
    for key, value in (
        ('num_heads = "?"', "num_heads = 2"),
        ('norm = "?"', 'norm = "post"'),
        ('embedding_scale = "?"', 'embedding_scale = "sqrt"'),
        ('kind = "?"', 'kind = "words"'),
        ('source = "?"', 'source = "source.txt"'),
        ('target = "?"', 'target = "target.json"'),
    ):
        change(draft, key, value)
    done = run(*given)
    assert done.returncode == 0, done.stderr
    assert largest_difference(load_bundle(tmp_path / "ours"), theirs) < 1e-5


# Refusals


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


class _Evil:
    def __reduce__(self) -> Any:
        return print, ("code ran",)


def _save_objects(folder: Path) -> None:
    torch.save(Course(), folder / "checkpoint.pt")


def _save_pickle(folder: Path) -> None:
    (folder / "checkpoint.pt").write_bytes(pickle.dumps(_Evil()))


def _save_other(folder: Path) -> None:
    torch.save({"linear.weight": torch.zeros(2, 2)}, folder / "checkpoint.pt")


def _change_state(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    state = torch.load(folder / "checkpoint.pt", weights_only=True)["model_state_dict"]
    edit(state)
    torch.save(state, folder / "checkpoint.pt")


def _add_layer_kind(folder: Path) -> None:
    name = "transformer.encoder.layers.1.conv.weight"
    _change_state(folder, lambda state: state.update({name: torch.zeros(3)}))


def _add_table(folder: Path) -> None:
    _change_state(folder, lambda state: state.update({"src_extra": torch.zeros(9, D)}))


def _add_mask(folder: Path) -> None:
    _change_state(folder, lambda state: state.update({"tgt_mask": torch.zeros(3, 3)}))


def _make_folder(folder: Path) -> None:
    (folder / "checkpoint.pt").unlink()
    (folder / "checkpoint.pt").mkdir()


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (_save_objects, BundleError, "can run hidden code"),
        (_save_pickle, BundleError, "can run hidden code"),
        (_save_other, BundleError, "self_attn.in_proj_weight, but does not"),
        (_add_layer_kind, BundleError, "encoder.layers.1.conv.weight is not"),
        (_add_table, ConfigurationError, "tensors.source_embedding must name a tensor"),
        (_add_mask, ConfigurationError, r'ignored = \["tgt_mask"\]'),
        (_make_folder, InputError, "checkpoint.pt is a folder"),
        (lambda at: (at / "checkpoint.pt").unlink(), InputError, "checkpoint.pt is none"),
        (
            lambda at: (at / "checkpoint.pt").write_bytes(b"PK"),
            BundleError,
            "is damaged, or no checkpoint",
        ),
        (lambda at: (at / "source.txt").unlink(), InputError, "source.txt does not exist"),
        (
            lambda at: change(at / "source.txt", "hund\n", "hund\nkatze\n"),
            ConfigurationError,
            "must have the 14 tokens of src_tok_emb.weight, but has 15",
        ),
        (
            lambda at: change(at / "description.toml", "num_heads = 2", "num_heads = 3"),
            ConfigurationError,
            r"must divide the width of the weights \(34\), but is 3",
        ),
        (
            lambda at: change(at / "description.toml", 'norm = "post"', 'norm = "posts"'),
            ConfigurationError,
            "model.norm",
        ),
        (
            lambda at: change(at / "description.toml", "[vocabulary]", '[vocabulary]\nend = "<e>"'),
            BundleError,
            "<e> must have one id",
        ),
        (
            lambda at: change(
                at / "description.toml", "source_start = false", 'source_start = "often"'
            ),
            ConfigurationError,
            "vocabulary.source_start",
        ),
        (lambda at: (at / "description.toml").write_text("a = "), ConfigurationError, "be TOML"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_and_leaves_nothing(
    spoil: Callable[[Path], Any],
    error: type[PellucidError],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_course(tmp_path)
    spoil(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=said) as raised:
        convert(tmp_path)
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.iterdir()) == before
    assert "code ran" not in capsys.readouterr().out


def test_formats_and_descriptions_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_course(tmp_path)
    checkpoint = tmp_path / "checkpoint.pt"
    with pytest.raises(InputError, match=r"needs (--config |config=)FILE"):
        pellucid.convert(checkpoint, tmp_path / "ours", format="nn-transformer")
    with pytest.raises(InputError, match="cannot be combined"):
        pellucid.convert(tmp_path, tmp_path / "ours", config=tmp_path / "description.toml")
    change(tmp_path / "description.toml", "[languages]", '[tensors]\noutput = "x"\n\n[languages]')
    with pytest.raises(
        ConfigurationError, match=r"tensors\.output must be one of generator\.weight"
    ):
        convert(tmp_path)
