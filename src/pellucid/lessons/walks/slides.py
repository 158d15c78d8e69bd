"""Slides on self-attention: from machine translation in 2015 to one worked sentence."""

from __future__ import annotations

from pellucid.lessons.walks.statement import Statement, Walk

__all__ = ["WALK"]

MATRIX = "one matrix for all three roles"

STATEMENTS = (
    Statement(
        place="formula",
        says="Attention(Q, K, V) = softmax(QKᵀ / √d_k) V.",
        expect="Which of the four steps makes every row sum to 1?",
        command="pellucid attend help-me --page 6",
        shows=("weights  exponentials ÷ their sum",),
        number="The softmax: exponentials divided by their sum.",
        vary="your own Q, K and V in a TOML file: pellucid attend mine.toml",
        lines=5,
    ),
    Statement(
        place="order",
        says="“The European Economic Area” has its words in another order in French.",
        expect="Which links between the words cross?",
        command='pellucid look demo "The European Economic Area" --links',
        shows=("Area      → zone", "European  → européenne"),
        number="Area, the last word, goes to zone, right after La; European to européenne, last.",
        errs="The slide writes Economique and Europeene; it is économique européenne.",
        vary="pellucid why order",
        lines=6,
    ),
    Statement(
        place="size mismatch",
        says="A sentence and its translation need not have as many words.",
        expect="How many French words stand for the three of “of the oven”?",
        command='pellucid look demo "The pizza came out of the oven." --links',
        shows=("of     → du", "the    → du"),
        number="Two, du four: of and the together become du.",
        errs="The slide's example has four words on both sides, so it shows order only.",
        vary="pellucid translate demo --align links whole files.",
        lines=8,
    ),
    Statement(
        place="machine translation in 2015: encoder",
        says="An RNN reads word by word: the second word waits for the first.",
        expect="If a model reads all words at once, what changes: the result, or the time?",
        command="pellucid why parallel",
        shows=("How much faster is one pass",),
        number="Only the time: one pass over the correct words gives the same gradient, sooner. "
        "The longer the text, the more it gains.",
        lines=8,
    ),
    Statement(
        place="machine translation in 2015: vectors",
        says="The encoder makes vectors that mean a word in the context of its sentence.",
        expect="Has “oven” the same vector in two sentences?",
        command='pellucid look demo --contexts oven "The pizza came out of the oven." '
        '"The oven is hot."',
        shows=("embedding             1.0000", "layer 0"),
        number="Only as an embedding. Its position and then each layer make it another one.",
        vary="the same with a word of your own, in three sentences",
        lines=6,
    ),
    Statement(
        place="machine translation in 2015: decoder",
        says="The decoder writes word by word from the encoder's vectors.",
        expect="What does a decoder of today read before it writes “pizza”?",
        command='pellucid look demo "The pizza" --stage weights --layer 0 --kind cross --head 0',
        shows=("A decoder row reads one token", "La → pizza"),
        number="Its words so far, <s> and La, and, by cross-attention, the vectors of the source.",
        vary="pellucid inspect demo --draw inference draws it.",
        lines=9,
    ),
    Statement(
        place="it and pizza",
        says="In “The pizza came out of the oven and it tasted good”, attention associates “it” "
        "with “pizza”.",
        expect="French must choose: “elle” for la pizza, “il” for le four. Which source word "
        "speaks most for elle?",
        command='pellucid look demo "The pizza came out of the oven and it tasted good" '
        "--why elle --not il --measure occlusion",
        shows=("pizza",),
        number="Pizza: its number is larger than the lead of elle, so without it il would lead.",
        errs="An arrow of attention is a weight, not a proof. The slide also has an arrow to oven.",
        vary='pellucid look demo "The soup came out of the oven and it tasted good" --why elle '
        "--not il",
        lines=16,
    ),
    Statement(
        place="similarity of every word",
        says="Self-attention computes the similarity between “The” and all words of the sentence.",
        expect="How many weights has the row of “The”?",
        command='pellucid look demo "The pizza is good" --part encoder --layer 0 --head 0 --row 0',
        shows=("Scores become weights",),
        number="Five: one for each word and one for </s>, and they sum to 1.",
        vary="the row of pizza: --row 1",
        lines=10,
    ),
    Statement(
        place="many examples",
        says="With many examples that tie pizza to it and tasted, their similarity grows.",
        expect="Do the scores grow with every further example, as the pronouns become right?",
        command="pellucid why examples",
        shows=("Do more examples",),
        number="The pronouns become right. The scores need not grow with them: only the loss is "
        "lowered, and a model may do that in other ways.",
        vary="pellucid why examples --seed 2: another draw.",
        lines=14,
    ),
    Statement(
        place="retrieval: query, key, value",
        says="A query is matched with keys, and the value of the best is returned, as with names "
        "and room numbers.",
        expect="Which parts of a table of names and rooms are keys and values?",
        command="pellucid attend room-number --page 1",
        shows=("keys and values",),
        number="Names are keys, rooms are values; the name that is asked for is the query.",
        lines=5,
    ),
    Statement(
        place="retrieval: Summeth",
        says="The query Summeth is answered by 200, the room of Smith.",
        expect="Which of Smith, Summer and Smeeth is written most like Summeth?",
        command="pellucid attend room-number --page 5",
        shows=("weights  exponentials ÷ their sum", "0.155362  0.422319  0.422319"),
        number="Summer and Smeeth are 2 letters away, Smith 3: softly the answer is room 201.27.",
        errs="Only by sound, Soundex S530, is Smith among the best, and Smeeth has the same code.",
        vary="pellucid attend room-number --page 14: how 200 comes about.",
        lines=4,
    ),
    Statement(
        place="encoded values",
        says="“Pizza is awesome <EOS>” is four rows of two encoded values.",
        expect="Which two words have nearly equal rows?",
        command="pellucid attend pizza --page 1",
        shows=("x  one embedding a word",),
        number="Pizza and is: 0.10 2.13 and 0.11 2.13. Attention will hardly tell them apart.",
        lines=6,
    ),
    Statement(
        place="query weights",
        says="The encoded values times the query weights give the queries; the row of awesome is "
        "0.8 0.8.",
        expect="0.21·0.78 + 3.13·0.90 = ?",
        command="pellucid attend pizza --page 2",
        shows=("awesome: q0 = 0.21·0.78 + 3.13·0.9 = 2.9808",),
        number="2.9808, and the second number is 5.741.",
        errs=f"The slide prints 0.8 0.8, which no product gives, with {MATRIX}.",
        lines=8,
    ),
    Statement(
        place="size of the weights",
        says="Two encoded values take a 2 × 2 matrix, 512 take 512 × 512.",
        expect="Must the matrix be square?",
        command="pellucid attend pizza --page 1",
        shows=("512 × d_k",),
        number="No: 512 × d_k. With eight heads d_k is 64.",
        errs="Square is one choice. Width in is fixed by the embedding, width out is free.",
        vary="pellucid attend heads",
        lines=4,
    ),
    Statement(
        place="key and value weights",
        says="The same is done for keys and for values; the row of awesome is 0.18 0.81 in both.",
        expect="With the same matrix, can queries and keys differ?",
        command="pellucid attend pizza --page 3",
        shows=("one matrix for all three must give Q = K = V",),
        number="They cannot: equal weights give Q = K = V.",
        errs="The slide prints 0.8 0.8 for the query and 0.18 0.81 for key and value.",
        vary="pellucid attend pizza --page 10: the other reading, with W transposed.",
        lines=2,
    ),
    Statement(
        place="QKᵀ, scaled",
        says="The unscaled dot products of all words with all words are divided by √2.",
        expect="Which column is the largest in every row?",
        command="pellucid attend pizza --page 4",
        shows=("scaled  scores ÷ √2 = 1.414214",),
        number="The column of awesome: its vector is the longest.",
        errs="With one matrix, length counts more than meaning. Real models learn three.",
        lines=5,
    ),
    Statement(
        place="softmax",
        says="The softmax makes rows that sum to 1; the row of Pizza is 0.38 0.4 0.9.",
        expect="What is the sum of 0.38, 0.4 and 0.9?",
        command="pellucid attend pizza --page 6",
        shows=("a row of weights sums to 1, the printed one to 1.68",),
        number="1.68. The row that follows from the numbers is 0.001386 0.001480 0.997134.",
        errs="No row of a softmax sums to 1.68; the slides later write 0.24 instead of 0.9.",
        lines=3,
    ),
    Statement(
        place="per cent",
        says="Pizza is 0.38 % similar to Pizza, 0.4 % to is, and so on.",
        expect="Is a weight of 0.38 a share of 0.38 %?",
        command="pellucid attend pizza --page 18",
        shows=("“0.38 % similar”",),
        number="It is 38 %.",
        errs="A fraction is called per cent.",
        lines=5,
    ),
    Statement(
        place="influence",
        says="The shares tell how much influence each word has on the final encoding of a word.",
        expect="If Pizza gives itself 0.1 %, where does its context come from?",
        command="pellucid attend pizza --page 5",
        shows=("context  weights · V",),
        number="From awesome: all three contexts are nearly its value, 2.9808 5.7410.",
        errs="A share is of the value vector, which may be short. --measure norms weighs that in.",
        vary='pellucid look demo "The pizza is good" --part encoder --layer 0 --head 0 --measure '
        "norms",
        lines=5,
    ),
    Statement(
        place="weights times values",
        says="0.38, 0.4 and 0.24 times 0.6, −0.35 and 3.86 give 1.0.",
        expect="Compute it: is it 1.0?",
        command="pellucid attend pizza --page 18",
        shows=("sum       1.0144",),
        number="1.0144, so 1.0 is right when rounded.",
        errs="The column is not the V of the slides before.",
        lines=1,
    ),
    Statement(
        place="36 %, 40 %, 24 %",
        says="36 % of the first value, 40 % of the second and 24 % of the third are taken.",
        expect="Do they sum to 100 %?",
        command="pellucid attend pizza --page 18",
        shows=("sum       1.0024",),
        number="They do, and give 1.0024.",
        errs="The row before says 38 %, and sums to 102 %.",
        lines=1,
    ),
    Statement(
        place="self-attention score",
        says="The result is a matrix of three rows and two columns.",
        expect="A row of three weights times a column of three values: how many numbers?",
        command="pellucid attend pizza --page 18",
        shows=("is 1 × 1), not the 3 × 2 matrix",),
        number="One. Three rows of weights times a 3 × 2 matrix of values give 3 × 2.",
        errs="The second column has no source, and <EOS> was dropped without a word.",
        lines=2,
    ),
)

WALK = Walk(
    name="slides",
    title="Slides: Self-Attention",
    about=(
        "Slides that begin with machine translation in 2015 and its troubles, order and size, "
        "show what “it” refers to, and work out “Pizza is awesome” with two numbers a word. "
        "Many of their numbers do not follow from each other; here each is computed. At the end "
        "you have seen the crossing links of a translation, and every product of one head."
    ),
    statements=STATEMENTS,
)
