"""Commands as functions: `pellucid.train`, `evaluate`, `convert` and `export`.

Each takes what the command of its name takes, and returns what the command prints.
"""
