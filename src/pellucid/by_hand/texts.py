"""The numbers that texts print, as data: tokens, embeddings, scores and weights."""

from __future__ import annotations

__all__ = [
    "ATTENTION_FILTER",
    "HELP_ME_SCORES",
    "NOT_ON_YOUR_LIFE_PRINTED_MASKED",
    "NOT_ON_YOUR_LIFE_PRINTED_WEIGHTS",
    "NOT_ON_YOUR_LIFE_SCORES",
    "NOT_ON_YOUR_LIFE_TOKENS",
    "PIZZA_EMBEDDINGS",
    "PIZZA_TOKENS",
    "PIZZA_WEIGHT",
    "ROOM_NUMBERS",
    "SHOW_ME_THE_MONEY_EMBEDDINGS",
    "SHOW_ME_THE_MONEY_TOKENS",
    "TOY_FOUR_SCORES",
]

TOY_FOUR_SCORES = ((40.0, 26.0),)

SHOW_ME_THE_MONEY_TOKENS = ("show", "me", "the", "money")
SHOW_ME_THE_MONEY_EMBEDDINGS = (
    (0.12, 0.63, 0.29, 0.41),
    (0.83, 0.34, 0.04, 0.53),
    (0.39, 0.77, 0.64, 0.09),
    (0.41, 0.08, 0.51, 0.87),
)
ATTENTION_FILTER = (
    (0.61, 0.18, 0.04, 0.17),
    (0.16, 0.57, 0.08, 0.19),
    (0.03, 0.07, 0.74, 0.16),
    (0.17, 0.23, 0.12, 0.48),
)

NOT_ON_YOUR_LIFE_TOKENS = ("<start>", "not", "on", "your", "life", "<end>")
NOT_ON_YOUR_LIFE_SCORES = (
    (16.2, 7.7, 2.0, 4.6, 3.1, 8.9),
    (3.2, 21.5, 6.1, 8.4, 8.1, 5.2),
    (1.9, 4.3, 18.7, 6.5, 7.2, 3.3),
    (2.7, 4.1, 7.6, 22.3, 9.0, 3.8),
    (4.4, 5.8, 6.9, 5.6, 24.5, 4.7),
    (4.0, 3.9, 6.7, 7.3, 6.1, 16.8),
)
NOT_ON_YOUR_LIFE_PRINTED_MASKED = (
    ("16.2", "−∞", "−∞", "−∞", "−∞", "−∞"),
    ("3.2", "21.5", "−∞", "−∞", "−∞", "−∞"),
    ("1.9", "4.3", "18.7", "−∞", "−∞", "−∞"),
    ("2.7", "4.1", "7.6", "22.3", "−∞", "−∞"),
    ("4.4", "5.8", "6.9", "5.6", "24.5", "−∞"),
    ("4.0", "3.9", "6.7", "7.3", "6.1", "16.8"),
)
NOT_ON_YOUR_LIFE_PRINTED_WEIGHTS = (
    (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.13, 0.87, 0.0, 0.0, 0.0, 0.0),
    (0.06, 0.16, 0.78, 0.0, 0.0, 0.0),
    (0.03, 0.06, 0.11, 0.80, 0.0, 0.0),
    (0.05, 0.06, 0.09, 0.06, 0.74, 0.0),
    (0.02, 0.04, 0.14, 0.15, 0.13, 0.52),
)

HELP_ME_SCORES = ((6.0, 4.0), (3.0, 8.0))

PIZZA_TOKENS = ("Pizza", "is", "awesome", "<EOS>")
PIZZA_EMBEDDINGS = ((0.1, 2.13), (0.11, 2.13), (0.21, 3.13), (0.8, 0.9))
PIZZA_WEIGHT = ((0.78, 2.0), (0.9, 1.7))

ROOM_NUMBERS = {"Smith": 200.0, "Summer": 201.0, "Smeeth": 202.0}
