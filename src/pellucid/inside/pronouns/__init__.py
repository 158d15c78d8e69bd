"""Antecedents of pronouns, as heads, maps, cuts and probes find them."""

__all__: list[str] = []
