"""The long form of some claims: what `pellucid why CLAIM --full` measures.

A module here has the name of its claim's module in `pellucid.lessons.why.claims`, and the same
``measure``.
"""
