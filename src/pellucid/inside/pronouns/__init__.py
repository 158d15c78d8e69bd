"""Does the model find the antecedent of a pronoun?"""

__all__: list[str] = []
