"""A page of objectives: the attention equation, stage by stage."""

from __future__ import annotations

from pellucid.lessons.walks.statement import Statement, Walk

__all__ = ["WALK"]

HEAD = '"The pizza is good" --part encoder --layer 0 --head 0'

STATEMENTS = (
    Statement(
        place="what it is",
        says="Self-attention makes a new, enriched vector for a token out of all tokens of the "
        "sequence.",
        expect="Does a word's vector change if only another word of its sentence changes?",
        command='pellucid look demo --contexts pizza "The pizza is good." "The pizza is bad."',
        shows=("embedding             1.0000", "layer 0"),
        number="The embedding is the same; after layer 0 the cosine is below 1.",
        vary="the same with a sentence in which pizza is the object",
        lines=6,
    ),
    Statement(
        place="two main steps",
        says="First relevance is scored and turned into weights, then values are combined by them.",
        expect="Which stage ends the first step?",
        command="pellucid attend help-me --page 6",
        shows=("weights  exponentials ÷ their sum", "weights × values"),
        number="The weights: 0.622459 and 0.377541. Then come the values.",
        lines=12,
    ),
    Statement(
        place="context vector",
        says="It captures what a token means among its neighbors.",
        expect="How many numbers has a context vector of one head?",
        command=f"pellucid look demo {HEAD} --stage context",
        shows=("Context vectors",),
        number="d_v, the width of a value. The heads' contexts are joined and mixed by W_O.",
        lines=8,
    ),
    Statement(
        place="however far apart",
        says="Relations between words are found regardless of how far apart they are.",
        expect="Is the path from word 1 to word 40 longer than that to word 2?",
        command="pellucid why position",
        shows=("Is there no order without positions?",),
        number="Without positions attention cannot even tell near from far: one step reaches all.",
        errs="Only as far as training has sentences: beyond its lengths positions are new.",
        lines=10,
    ),
    Statement(
        place="queries",
        says="Queries attend to other vectors and are where context vectors begin.",
        expect="How many queries has a sentence of five tokens?",
        command=f"pellucid look demo {HEAD} --stage query",
        shows=("Queries",),
        number="One for each token, in each head of each layer.",
        lines=8,
    ),
    Statement(
        place="keys",
        says="Keys are what queries are compared with.",
        expect="If a key is the zero vector, which score has it?",
        command="pellucid attend help-me --page 4",
        shows=("key",),
        number="0, whatever the query. In the softmax that is still e⁰ = 1, not nothing.",
        lines=12,
    ),
    Statement(
        place="values",
        says="Values are the reference that the matching of queries and keys combines.",
        expect="Do values take part in the scores?",
        command="pellucid attend toy-four --page 9",
        shows=("value  X · W^v", "scores  Q·Kᵀ"),
        number="They do not: scores are of queries and keys only.",
        errs="The page says that values summarize scores; the weights summarize, values are "
        "what they mix.",
        lines=24,
    ),
    Statement(
        place="projection",
        says="The embeddings are projected by three learnable matrices W_q, W_k and W_v.",
        expect="How is the first number of a query computed?",
        command="pellucid attend toy-four --page 4",
        shows=("q0 = 0·0 + 0·0 + 2·2 + 1·1 = 5",),
        number="The row times the first column of W^q.",
        vary="pellucid attend toy-four --quiz",
        lines=6,
    ),
    Statement(
        place="similar dimensions",
        says="Q, K and V have similar dimensions to the embeddings.",
        expect="Must they have the same?",
        command="pellucid attend encoder-layer --page 1",
        shows=("d_v = 3",),
        number="No: d = 4, d_q = d_k = 2 and d_v = 3 work. Only d_q and d_k must agree.",
        errs="Similar is a habit. The notes' appendix has d = 4 and d_q = 16.",
        lines=3,
    ),
    Statement(
        place="without projections",
        says="Without the matrices, relations between embeddings would be static.",
        expect="If queries and keys are the embeddings themselves, to what does a word attend?",
        command="pellucid why diagonal",
        shows=("without projections 100%",),
        number="Nearly always to itself.",
        vary="pellucid attend lets-go --page 8",
        lines=4,
    ),
    Statement(
        place="learnability",
        says="Learning lets the model find patterns, and read an embedding by its context.",
        expect="Are the weights of a trained model those of its beginning?",
        command="pellucid attend show-me-the-money --page 1",
        shows=("Show me the money",),
        number="Training moves them until the loss is near 0, before your eyes.",
        vary="pellucid attend show-me-the-money in a terminal, page by page",
        lines=14,
    ),
    Statement(
        place="attention equation",
        says="softmax(QKᵀ / √d_k) · V.",
        expect="Is the last product one of single numbers, or of matrices?",
        command="pellucid attend toy-four --page 10",
        shows=("weights × values", "context  weights · V"),
        number="Of matrices: each context is a sum of whole value vectors.",
        errs="The page writes an asterisk, which elsewhere multiplies number by number.",
        lines=12,
    ),
    Statement(
        place="stage 1: score",
        says="The dot product QKᵀ is the unscaled score; a higher one means more aligned.",
        expect="Can a score be negative?",
        command=f"pellucid look demo {HEAD} --stage scores",
        shows=("Scores",),
        number="It can: vectors may point away from each other. All are computed at once.",
        errs="A long vector scores high without being more aligned: see pellucid attend pizza.",
        lines=10,
    ),
    Statement(
        place="stage 2: scale",
        says="Dividing by √d_k avoids high scores and stabilizes gradients.",
        expect="At d_k = 512, how much gradient is left without it?",
        command="pellucid why scale",
        shows=("Does dividing by √d_k keep",),
        number="Hardly any without it, most with it, as long as queries and keys are independent.",
        vary="pellucid why scale --png scale.png",
        lines=14,
    ),
    Statement(
        place="stage 3: softmax",
        says="The softmax makes scores positive, and each row sum to 1.",
        expect="Which weight has a masked position?",
        command=f"pellucid look demo {HEAD} --row 1",
        shows=("exponential", "sum"),
        number="0, as e^−∞ is 0. All others are positive, and their sum is 1.",
        lines=10,
    ),
    Statement(
        place="probabilities",
        says="The weights are probabilities that say how much to focus on other tokens.",
        expect="Is the word with the largest weight the one that matters most?",
        command='pellucid look demo "The pizza is good" --measure weights --measure occlusion',
        shows=("How similarly they order the source words",),
        number="Often not: taking words away orders them differently than the weights do.",
        errs="A weight is a share of a sum, not an importance.",
        vary="docs/guides/measures.md says how far to trust each measure.",
        lines=14,
    ),
    Statement(
        place="weights of “the”",
        says="A row of weights tells to what extent “the” attends to each input token.",
        expect="Is the row of “The” the same in all heads?",
        command='pellucid look demo "The pizza is good" --part encoder --layer 0 --kind self',
        shows=("Weights, encoder layer 0",),
        number="No: every head of every layer has its own. One is shown, the clearest.",
        vary='pellucid look demo "The pizza is good" --heads',
        lines=14,
    ),
)

WALK = Walk(
    name="objectives",
    title="Self-attention mechanism: objectives",
    about=(
        "A page that lists what to understand: the three roles, the projections, the attention "
        "equation in three stages, the context vector. It has no numbers; here each "
        "stage is shown on a model and by hand."
    ),
    statements=STATEMENTS,
)
