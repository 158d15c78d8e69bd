"""A lecture on self-attention: three forms, the last of which is the paper's."""

from __future__ import annotations

from pellucid.lessons.walks.statement import Statement, Walk

STATEMENTS = (
    Statement(
        place="embedding",
        says="Words are embedded into vectors before an encoder reads them.",
        expect="How many numbers does a word become?",
        command='pellucid look demo "The pizza" --part encoder --stage embedding',
        shows=("embedding, encoder",),
        number="96 in this model, columns 0 to 95; this is called d_model. The lecture draws four.",
        vary='pellucid look demo "The pizza" --all --npz pizza.npz writes every vector to a file.',
        lines=14,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="parallelization",
        says="Each position can be computed on its own processor; the lecture follows the "
        "second word.",
        expect="If all rows are computed at once, do the numbers change, or only the time?",
        command="pellucid why parallel",
        shows=("How much faster is one pass",),
        number="Only the time: the gradient is the same. How much faster depends on the machine.",
        lines=9,
    ),
    Statement(
        place="first form: score",
        says="The embedding of the word is scored against those of the other words.",
        expect="Word 2 is 0 0 2 1, word 1 is 0 1 2 1. What is their dot product?",
        command="pellucid attend toy-four --page 2",
        shows=("scores  Q·Kᵀ", "word 2       5       5       2"),
        number="0·0 + 0·1 + 2·2 + 1·1 = 5: the score of word 1. Word 3 has 2.",
        errs="",
        vary="put your own rows into a CSV file: pellucid attend rows.csv",
        lines=4,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="first form: scale",
        says="Scores are divided by 2, the root of the keys' width of four.",
        expect="What becomes of the score 5?",
        command="pellucid attend toy-four --page 2",
        shows=("scaled  scores ÷ √4 = 2",),
        number="5 ÷ √4 = 2.5.",
        vary="pellucid why scale: why large scores would starve the gradient.",
        lines=3,
        live="head encoder.self scaled",
    ),
    Statement(
        place="first form: softmax",
        says="A softmax turns the scaled scores into shares.",
        expect="Word 1 has 2.5 and word 3 has 1.0. Which share has word 1: two thirds, or more?",
        command="pellucid attend toy-four --page 3",
        shows=("weights  exponentials ÷ their sum", "0.817574"),
        number="0.817574: the exponential makes a difference of 1.5 a factor of 4.48.",
        lines=4,
        live="head encoder.self",
    ),
    Statement(
        place="first form: multiply and add",
        says="Each embedding is multiplied by its share, the word's own embedding is added as it "
        "is, and the sum is the context vector.",
        expect="Word 2's last number is 1. Is that of its context larger or smaller?",
        command="pellucid attend toy-four --page 3",
        shows=("context  its own embedding as it is",),
        number="Larger: 1 + 0.817574·1 + 0.182426·0 = 1.817574.",
        errs="The paper scores the word itself too, and adds nothing here. The residual "
        "connection around the layer adds the word's vector later.",
        vary="pellucid attend toy-four --page 11 scores the word itself too.",
        lines=3,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="first form: its fault",
        says="On embeddings only, the model mainly attends to similar words.",
        expect="In a trained model with queries and keys, does a word attend most to itself?",
        command="pellucid why diagonal",
        shows=("Does a word attend most to itself?", "without projections 100%"),
        number="On embeddings only every word attends most to itself. Queries and keys undo that.",
        lines=10,
        live="head encoder.self",
    ),
    Statement(
        place="second form: queries",
        says="A query is the embedding times a query matrix.",
        expect="x = 0 0 2 1 and W^q's first column is 0 0 2 1. What is the query's first number?",
        command="pellucid attend toy-four --page 4",
        shows=("q0 = 0·0 + 0·0 + 2·2 + 1·1 = 5",),
        number="5, written out.",
        vary="pellucid attend toy-four --quiz asks for the next numbers.",
        lines=6,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="second form: a network for queries",
        says="Queries may also come from a small feed-forward network.",
        expect="What does a network do that a matrix cannot?",
        command="pellucid attend toy-four --page 12",
        shows=("max(0, −1) = 0",),
        number="It cuts off: h3 would be −1 and becomes 0. No matrix does that.",
        lines=5,
    ),
    Statement(
        place="second form: keys and scores",
        says="Keys come from another matrix. Queries against keys give the scores 40 and 26.",
        expect="After dividing by 2 and the softmax, how much is left for the score 26?",
        command="pellucid attend toy-four --page 6",
        shows=("weights  exponentials ÷ their sum", "0.999089"),
        number="20 and 13 give 0.999089 and 0.000911: a difference of 7 is a factor of 1,097.",
        errs="The lecture does not print the softmax. Its scores are taken as those of the "
        "two other words.",
        lines=4,
        live="head encoder.self scores",
    ),
    Statement(
        place="second form: weights times keys",
        says="The weights multiply the keys, and the sum is the context vector.",
        expect="Key 1 is 4 0 0 5. What is the context, nearly?",
        command="pellucid attend toy-four --page 6",
        shows=("context  weights · K",),
        number="Nearly key 1: 3.998178 0 0 4.999089.",
        errs="The lecture calls this acceptable, and then changes it: a vector that is good to be "
        "found by need not be good to hand over.",
        lines=3,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="third form: values",
        says="Values come from a third matrix. All three matrices are learned.",
        expect="How many learned matrices has the attention of one layer with four heads?",
        command="pellucid inspect demo",
        shows=("parameters",),
        number="13: three for each head, and W_O after all heads. inspect counts their numbers.",
        vary="pellucid attend show-me-the-money trains such weights before your eyes.",
        lines=8,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="third form: the final one",
        says="Queries are scored against keys, and the weights multiply the values.",
        expect="With the weights 0.999089 and 0.000911, which value does the context resemble?",
        command="pellucid attend toy-four --page 10",
        shows=("context  weights · V",),
        number="Value 1, 4 2 5 1: the context is 3.998178 2.000000 5.001822 0.999089.",
        vary='pellucid look demo "The pizza is good." --part encoder --row 1 --whole follows a '
        "real word the same way.",
        lines=3,
        live="arithmetic encoder.self",
    ),
    Statement(
        place="on to the feed-forward network",
        says="The context is passed up to the feed-forward neural network.",
        expect="Does anything happen between the context and the network?",
        command="pellucid attend encoder-layer --page 14",
        shows=("residual  x + output",),
        number="Yes: W_O mixes the heads, the word's vector is added, and the sum is normalized.",
        errs="The lecture leaves these steps out, as it says, for an overview.",
        lines=8,
        live="arithmetic encoder.self",
    ),
)

WALK = Walk(
    name="lecture",
    title="A lecture on self-attention",
    about=(
        "A spoken lecture builds self-attention in three forms, for the second word of an input "
        "and vectors of four numbers: embeddings only; queries and keys; queries, keys and "
        "values. It prints two scores and no weights, so the embeddings and matrices here are "
        "ours, chosen so that its scores come out. At the end you can compute a context vector "
        "by hand."
    ),
    statements=STATEMENTS,
)
