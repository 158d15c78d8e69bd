"""The antecedents of pronouns: whether heads, maps, cuts and probes find them."""

__all__: list[str] = []
