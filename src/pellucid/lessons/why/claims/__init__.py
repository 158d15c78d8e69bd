"""One file for each claim: how it is measured, and the rule of its verdict."""
