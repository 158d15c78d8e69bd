"""Layers, positions and trained weights by hand: every number again in NumPy."""

from __future__ import annotations

import math
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.examples.positions import FAR, fit_move
from pellucid.by_hand.examples.room_number import edit_path, edit_table
from pellucid.by_hand.matrices import read_example
from pellucid.by_hand.row import follow_row_of
from pellucid.by_hand.sheet import Step, WorkedExample
from pellucid.by_hand.small_translator import END, PAIRS, START, WIDTH, Learned, learn
from pellucid.errors import DataError


def packaged(name: str) -> dict[str, Any]:
    source = files("pellucid.by_hand.examples").joinpath(f"{name}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


LAYER, HEADS = packaged("encoder-layer"), packaged("heads")
LAYER_HEADS, HEADS_WEIGHTS = (
    [[head[name] for name in ("w_query", "w_key", "w_value")] for head in example["heads"]]
    for example in (LAYER, HEADS)
)


def steps_of(example: WorkedExample, name: str) -> list[Step]:
    return [step for part in example.parts for step in part.steps if step.name == name]


def values(step: Step) -> np.ndarray:
    return step.tables[0].values_LX.numpy()


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attend(x: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray) -> np.ndarray:
    return softmax((x @ wq) @ (x @ wk).T / math.sqrt(wq.shape[1])) @ (x @ wv)


def norm(y: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    return (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + epsilon)


def test_encoder_layer_every_stage_equals_numpy() -> None:
    example = EXAMPLES["encoder-layer"]()
    x = np.array(LAYER["x"], dtype=float)
    heads = [attend(x, *(np.array(w, dtype=float) for w in head)) for head in LAYER_HEADS]
    for found, expected in zip(steps_of(example, "context"), heads, strict=True):
        np.testing.assert_allclose(values(found), expected, rtol=1e-12)
    output = np.hstack(heads) @ np.array(LAYER["w_output"])
    np.testing.assert_allclose(values(steps_of(example, "output")[0]), output, rtol=1e-12)
    y = x + output
    middle = norm(y)
    w1, b1, w2, b2 = (np.array(weight, dtype=float) for weight in LAYER["feed_forward"].values())
    change = np.maximum(0, middle @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(values(steps_of(example, "feed-forward")[0]), change, atol=1e-12)
    first, last = steps_of(example, "norm")
    np.testing.assert_allclose(values(first), middle, atol=1e-12)
    np.testing.assert_allclose(values(last), norm(middle + change), atol=1e-12)
    spread = values(steps_of(example, "mean and variance")[0])
    np.testing.assert_allclose(spread[:, 0], y.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(spread[:, 1], y.var(axis=1), atol=1e-12)
    for name in ("query", "key", "value"):
        for step, head in zip(steps_of(example, name), LAYER_HEADS, strict=True):
            weight = np.array(head[("query", "key", "value").index(name)])
            np.testing.assert_array_equal(values(step), x @ weight)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_encoder_layer_row_has_all_arithmetic_of_the_word(row: int) -> None:
    followed = follow_row_of(EXAMPLES["encoder-layer"](), row)
    names = [step.name for part in followed.parts for step in part.steps]
    for name in ("query", "key", "value", "scores", "exponentials", "context"):
        assert names.count(name) == 2, name
    for name in ("residual", "mean and variance", "norm"):
        assert names.count(name) == 2, name
    for name in ("output", "inner", "feed-forward"):
        assert names.count(name) == 1, name
    word = ("Pizza", "is", "awesome")[row]
    (spread, _) = steps_of(followed, "mean and variance")
    assert all(line.startswith(f"{word}: ") for line in spread.lines)


def test_heads_joined_equal_numpy_and_the_sum_of_their_shares() -> None:
    example = EXAMPLES["heads"]()
    x, output = np.array(HEADS["x"], dtype=float), np.array(HEADS["w_output"], dtype=float)
    heads = [attend(x, *(np.array(w, dtype=float) for w in head)) for head in HEADS_WEIGHTS]
    expected = np.hstack(heads) @ output
    np.testing.assert_allclose(values(steps_of(example, "output")[0]), expected, rtol=1e-12)
    np.testing.assert_allclose(values(steps_of(example, "sum")[0]), expected, rtol=1e-12)
    for end, head, rows in zip("₁₂", heads, (output[:3], output[3:]), strict=True):
        share = values(steps_of(example, f"share of head {end}")[0])
        np.testing.assert_allclose(share, head @ rows, rtol=1e-12)


def test_heads_each_finds_what_its_note_says() -> None:
    first, second = (step for step in steps_of(EXAMPLES["heads"](), "weights")[:2])
    show, the = values(first)[0], values(second)[2]
    assert show[1] == show[3] > 0.4
    assert the.argmax() == 3
    assert the[1] < the[0]


def encode(place: float) -> np.ndarray:
    return np.array(
        [math.sin(place), math.cos(place), math.sin(place / 100), math.cos(place / 100)]
    )


def test_positions_angles_and_move_equal_numpy() -> None:
    example = EXAMPLES["positions"]()
    (table,) = steps_of(example, "P")
    np.testing.assert_allclose(values(table), [encode(place) for place in range(4)], atol=1e-12)
    (move,) = steps_of(example, "M")
    for place in (0, 1, 77, 4321):
        np.testing.assert_allclose(values(move) @ encode(place), encode(place + 3), atol=1e-12)
    (moved,) = steps_of(example, "M · PE")
    np.testing.assert_allclose(values(moved), [encode(4), encode(5)], atol=1e-12)


def test_positions_lines_print_angles_as_the_notes_do() -> None:
    (table,) = steps_of(EXAMPLES["positions"](), "P")
    assert "PE₃,₂ = sin(3 ÷ 10000^(2÷4)) = sin(0.03) = 0.029996" in table.lines
    assert len(table.lines) == 16
    for line in table.lines:
        _, _, angle, value = line.replace("−", "-").split(" = ")
        function, number = re.fullmatch(r"(sin|cos)\((.*)\)", angle).groups()  # type: ignore[union-attr]
        assert getattr(math, function)(float(number)) == pytest.approx(float(value), abs=1e-6)


def test_positions_offset_of_bank_and_man_is_3_in_both_sentences() -> None:
    example = EXAMPLES["positions"]()
    for index, places in ((1, (1, 4)), (2, (2, 5))):
        (step,) = steps_of(example, f"sentence {index}")
        np.testing.assert_allclose(values(step), [encode(place) for place in places], atol=1e-12)
        assert step.lines[-1] == "offset found: 3"
    for weights in steps_of(example, "weights"):
        best = weights.tables[0].columns[int(values(weights).argmax())]
        assert best.startswith("man ")


def test_positions_fitted_move_holds_far_and_a_fitted_place_does_not() -> None:
    example = EXAMPLES["positions"]()
    fitted = fit_move().numpy()
    for place in FAR:
        np.testing.assert_allclose(fitted @ encode(place), encode(place + 3), atol=1e-6)
    (errors,) = steps_of(example, "largest error of a fitted M")
    assert values(errors).max() < 1e-6
    (read,) = steps_of(example, "absolute position")
    true, guess = values(read).T
    assert abs(true[0] - guess[0]) < 0.1
    assert abs(true[-1] - guess[-1]) > 1000
    for line in steps_of(example, "products")[0].lines:
        assert float(line.rpartition(" ")[2]) == pytest.approx(encode(0) @ encode(3), abs=1e-6)


def decode_in_numpy(learned: Learned, source: str) -> list[str]:
    """Decode greedily with another implementation of the small translator."""
    w = {name: weight.numpy() for name, weight in learned.weights.items()}
    sources = list(dict.fromkeys(word for s, _ in PAIRS for word in s.split()))
    targets = list(dict.fromkeys([START, END, *(word for _, t in PAIRS for word in t.split())]))

    def embed(table: np.ndarray, ids: list[int]) -> np.ndarray:
        return np.array([table[i] + encode(place) for place, i in enumerate(ids)])

    def sub(part: str, x: np.ndarray, memory: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        scores = (x @ w[f"{part} q"]) @ (memory @ w[f"{part} k"]).T / math.sqrt(WIDTH)
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        return norm(x + softmax(scores) @ (memory @ w[f"{part} v"]))

    x = embed(w["source"], [sources.index(word) for word in source.split()])
    memory = sub("encoder", x, x, None)
    read = [START]
    while len(read) < 6:
        y = embed(w["target"], [targets.index(word) for word in read])
        mask = np.tril(np.ones((len(y), len(y)), dtype=bool)) if learned.has_mask else None
        y = sub("across", sub("itself", y, y, mask), memory, None)
        read.append(targets[int((y @ w["output"])[-1].argmax())])
        if read[-1] == END:
            break
    return read[1:]


@pytest.mark.parametrize("has_mask", [True, False])
def test_trained_answers_equal_another_implementation(has_mask: bool) -> None:
    learned = learn(has_mask)
    for source, _ in PAIRS:
        assert [turn.chosen for turn in learned.decode(source)] == decode_in_numpy(learned, source)


def test_training_with_the_mask_learns_and_without_it_only_the_loss_does() -> None:
    masked, unmasked = learn(True), learn(False)
    num_tokens = sum(len(target.split()) + 1 for _, target in PAIRS)
    for learned in (masked, unmasked):
        losses = list(learned.losses.values())
        assert losses[0] > 2
        assert losses[-1] < 0.05
        assert learned.num_forced_right == num_tokens
    right = [sum(m.answer(s) == t for s, t in PAIRS) for m in (masked, unmasked)]
    assert right[0] == len(PAIRS)
    assert right[1] <= 2
    itself, _ = unmasked.attend(PAIRS[0][0], (START, *PAIRS[0][1].split()))
    assert float(itself.weights_LM.triu(1).sum()) > 0.1


@pytest.mark.parametrize(
    ("word", "other", "distance"),
    [("Summeth", "Smith", 3), ("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2)],
)
def test_edit_table_and_path_agree(word: str, other: str, distance: int) -> None:
    table = edit_table(word, other)
    assert table.shape == (len(word) + 1, len(other) + 1)
    assert table[-1, -1] == distance
    path = edit_path(word, other)
    assert sum(not change.startswith("keep") for change in path) == distance
    built = ""
    for change in path:
        kind, *letters = change.split()
        built += {"keep": letters[-1], "put": letters[-1], "change": letters[-1]}.get(kind, "")
    assert built == other


OWN = """tokens = ["a", "b", "c"]
x = [[1, 0.5], [-2, 3], [0.25, 1]]
w_query = [[1, 2, 3, 4], [0, 1, 0, 1]]
w_key = [[0.1, 0.2, 0, 0], [1, 0, -1, 0]]
w_value = [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]
heads = 2
w_output = [[1, 0], [0, 1], [1, 1], [0.5, 0], [0, 0.5], [-1, 1]]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("place", ["post", "pre"])
def test_own_file_with_everything_equals_numpy(tmp_path: Path, place: str) -> None:
    text = f"""{OWN}positions = "sinusoidal"
mask = "causal"
[norm]
place = "{place}"
epsilon = 0.01
gain = [2, 3]
bias = [0.5, -0.5]
[feed_forward]
inner = [[1, -1, 2, 0, 1], [0, 1, 1, -1, 1]]
inner_bias = [0, 0.5, -1, 0, 0.1]
outer = [[1, 0], [0, 1], [1, 1], [2, 0], [0, -1]]
outer_bias = [0.25, -0.25]
"""
    example = read_example(write(tmp_path, text))
    x = np.array([[1, 0.5], [-2, 3], [0.25, 1]])
    x = x + [[math.sin(i), math.cos(i)] for i in range(3)]

    def normed(y: np.ndarray) -> np.ndarray:
        return norm(y, 0.01) * [2, 3] + [0.5, -0.5]

    entering = normed(x) if place == "pre" else x
    wq = np.array([[1, 2, 3, 4], [0, 1, 0, 1]])
    wk = np.array([[0.1, 0.2, 0, 0], [1, 0, -1, 0]])
    wv = np.array([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]])
    blocks = []
    for k, v in ((slice(0, 2), slice(0, 3)), (slice(2, 4), slice(3, 6))):
        scores = (entering @ wq[:, k]) @ (entering @ wk[:, k]).T / math.sqrt(2)
        scores = np.where(np.tril(np.ones((3, 3), dtype=bool)), scores, -np.inf)
        blocks.append(softmax(scores) @ (entering @ wv[:, v]))
    for step, block in zip(steps_of(example, "context"), blocks, strict=True):
        np.testing.assert_allclose(values(step), block, atol=1e-12)
    wo = np.array([[1, 0], [0, 1], [1, 1], [0.5, 0], [0, 0.5], [-1, 1]])
    y = x + np.hstack(blocks) @ wo
    y = normed(y) if place == "post" else y
    w1 = np.array([[1, -1, 2, 0, 1], [0, 1, 1, -1, 1]])
    w2 = np.array([[1, 0], [0, 1], [1, 1], [2, 0], [0, -1]])
    inside = normed(y) if place == "pre" else y
    change = np.maximum(0, inside @ w1 + [0, 0.5, -1, 0, 0.1]) @ w2 + [0.25, -0.25]
    result = normed(y + change) if place == "post" else y + change
    last = example.parts[-1].steps[-1]
    assert last.name == ("norm" if place == "post" else "residual")
    np.testing.assert_allclose(values(last), result, atol=1e-12)


def test_own_file_network_without_norm_has_no_residual_connection(tmp_path: Path) -> None:
    text = "x = [[1, 2], [3, 4]]\n[feed_forward]\ninner = [[1], [1]]\nouter = [[1, 2, 3]]\n"
    example = read_example(write(tmp_path, text))
    x = np.array([[1.0, 2], [3, 4]])
    context = softmax(x @ x.T / math.sqrt(2)) @ x
    expected = np.maximum(0, context @ [[1], [1]]) @ [[1, 2, 3]]
    np.testing.assert_allclose(values(example.parts[-1].steps[-1]), expected, rtol=1e-12)
    assert not steps_of(example, "residual")


@pytest.mark.parametrize(
    "positions", ["true", '"sinusoidal"', "[[0, 1], [0.841470985, 0.540302306]]"]
)
def test_own_file_positions_may_be_named_or_given(tmp_path: Path, positions: str) -> None:
    example = read_example(write(tmp_path, f"x = [[1, 2], [3, 4]]\npositions = {positions}\n"))
    total = [step for step in steps_of(example, "x") if "positions" in step.formula]
    expected = [[1, 3], [3 + math.sin(1), 4 + math.cos(1)]]
    np.testing.assert_allclose(values(total[0]), expected, atol=1e-8)


def test_own_file_heads_split_given_queries_keys_and_values(tmp_path: Path) -> None:
    text = "query = [[1, 2]]\nkey = [[3, 4], [5, 6], [7, 0]]\nheads = 2\n"
    text += "value = [[1, 5], [2, 6], [3, 7]]\n"
    example = read_example(write(tmp_path, text))
    first, second = steps_of(example, "context")
    np.testing.assert_allclose(values(first), softmax(np.array([[3.0, 5, 7]])) @ [[1], [2], [3]])
    np.testing.assert_allclose(values(second), softmax(np.array([[8.0, 12, 0]])) @ [[5], [6], [7]])


@pytest.mark.parametrize("name", ["encoder-layer", "heads"])
def test_own_file_copied_from_an_example_is_worked_out_alike(tmp_path: Path, name: str) -> None:
    source = files("pellucid.by_hand.examples").joinpath(f"{name}.toml")
    copied = read_example(write(tmp_path, source.read_text(encoding="utf-8")))
    shipped = EXAMPLES[name]()
    assert (copied.title, copied.note) == (shipped.title, shipped.note)
    for part, other in zip(copied.parts, shipped.parts, strict=False):
        assert (part.title, part.note) == (other.title, other.note)
        assert [step.formula for step in part.steps] == [step.formula for step in other.steps]


def test_own_file_heads_of_different_widths_equal_numpy(tmp_path: Path) -> None:
    text = X + "[parts.joined]\ntitle = 'Both'\n"
    for key_width, value_width in ((1, 3), (5, 2)):
        weight = [[0.5 * (row + column) for column in range(key_width)] for row in range(2)]
        value = [[row - column for column in range(value_width)] for row in range(2)]
        text += f"[[heads]]\nw_query = {weight}\nw_key = {weight}\nw_value = {value}\n"
    example = read_example(write(tmp_path, text))
    x, heads = np.array([[1.0, 2], [3, 4]]), tomllib.loads(text)["heads"]
    for step, head in zip(steps_of(example, "context"), heads, strict=True):
        names = ("w_query", "w_key", "w_value")
        expected = attend(x, *(np.array(head[name], dtype=float) for name in names))
        np.testing.assert_allclose(values(step), expected, rtol=1e-12)
    assert example.parts[-1].title == "Both"


X = "x = [[1, 2], [3, 4]]\n"
HEAD = "[[heads]]\nw_query = [[1], [1]]\nw_key = [[1], [1]]\nw_value = [[1], [1]]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            X + "heads = 0",
            r"heads must be a whole number.*, but is 0 \(.*own.toml:2",
        ),
        (X + "heads = true", "heads must be a whole number"),
        (X + "heads = 1.5", "heads must be a whole number"),
        (X + "heads = 3", "2 columns do not split into 3"),
        (X + "w_output = [[1]]", "one row for each of the 2 columns of the joined heads"),
        (X + "w_ouput = [[1]]", "Did you mean 'w_output'"),
        (X + "head = 1", "Did you mean 'heads'"),
        (X + "positions = 'sinusodial'", "Did you mean 'sinusoidal'"),
        (X + "positions = 5", 'positions must be "sinusoidal"'),
        (X + "positions = [[1, 2]]", "2 × 2, but has 1 × 2"),
        (X + "positions = [[1, 'a'], [1, 2]]", r"positions\[0\]\[1\]"),
        ("x = [[1, 2, 3]]\npositions = true", "even width"),
        ("query = [[1]]\nkey = [[1]]\nvalue = [[1]]\npositions = true", "x is missing"),
        ("query = [[1]]\nkey = [[1]]\nvalue = [[1]]\nnorm = 'post'", "x is missing"),
        (X + "norm = 'pots'", "Did you mean 'post'"),
        (X + "norm = 3", "norm.place must be 'post', 'pre' or 'none', but is 3"),
        (X + "[norm]\nplce = 'pre'", r"'norm.plce' is not \(.*own.toml:3, norm.plce\). Did you"),
        (X + "[norm]\nepsilon = 0", "norm.epsilon must be "),
        (X + "[norm]\nepsilon = nan", "norm.epsilon must be "),
        (X + "[norm]\ngain = [1]", "norm.gain must be a list of 2 numbers.* has 1"),
        (X + "[norm]\nbias = [1, inf]", r"own.toml:3, norm.bias\[1\]"),
        (X + "w_output = [[1], [2]]\nnorm = 'post'", "Give w_output with 2 columns"),
        (X + "feed_forward = [[1]]", "feed_forward must be a table"),
        (
            X + "[feed_forward]\ninner = [[1], [1]]",
            "outer must be given, but is missing",
        ),
        (X + "[feed_forward]\ninner = [[1]]\nouter = [[1]]", "each of the 2 columns that come in"),
        (X + "[feed_forward]\ninner = [[1], [1]]\nouter = [[1], [1]]", "1 columns of feed_forward"),
        (X + "[feed_forward]\niner = [[1]]", "Did you mean 'inner'"),
        (
            X + "[feed_forward]\ninner = [[1], [1]]\nouter = [[1, 2]]\ninner_bias = [1, 2]",
            "feed_forward.inner_bias must be a list of 1 numbers",
        ),
        (
            X + "norm = true\n[feed_forward]\ninner = [[1], [1]]\nouter = [[1, 2, 3]]",
            "Give feed_forward.outer with 2 columns",
        ),
        (X + "w_key = [[1], [1]]\n" + HEAD, r"\[\[heads\]\] cannot be combined with w_key \(.*:2"),
        (HEAD, "heads must come with x"),
        (X + HEAD + HEAD.replace("w_key", "w_kye"), r"heads\[1\].w_kye.*own.toml:8.*mean 'w_key'"),
        (X + HEAD + HEAD.replace("[[1], [1]]", "[[1]]"), r"heads\[1\].w_query must have one row"),
        (X + "heads = []", "heads must not be empty"),
        (X + "features = ['a', 'b']", r"features must come with \[\[heads\]\]"),
        (X + "features = ['a']\n" + HEAD, "each of the 2 columns of x, but features has 1"),
        (X + "title = 5", "title must be a text, but is 5"),
        (X + "[parts.joind]\nnote = 'a'", "'parts.joind' is not .*:2.* Did you mean 'joined'"),
        (X + "[parts.joined]\nnotes = 'a'", "'parts.joined.notes' is not .*:3.* mean 'note'"),
        (
            X + "[feed_forward]\ninner = [[1], [nan]]\nouter = [[1, 2]]",
            r"own.toml:3, feed_forward.inner\[1\]\[0\]",
        ),
    ],
)
def test_own_file_with_a_fault_is_refused_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_example(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "own.toml" in str(caught.value)
