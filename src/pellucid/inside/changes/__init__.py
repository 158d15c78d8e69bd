"""Changes while a model runs: cut, force or average, and decode again."""
