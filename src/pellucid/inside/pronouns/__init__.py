"""Antecedents of pronouns, as heads, maps, cuts and probes find them."""
