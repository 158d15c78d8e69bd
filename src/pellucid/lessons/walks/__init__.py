"""The five texts as walks: their statements in their order, each with a command that shows it."""
