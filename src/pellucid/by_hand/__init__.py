"""Attention worked out number by number: everything behind `pellucid attend`.

`sheet` says what an example is made of. `stages` writes an attention and its arithmetic down,
`layer` what surrounds it in an encoder layer; `row` follows one row. `pages` cuts an example into
pages, and `questions` asks for its numbers. `matrices` makes an example of a file of matrices,
which `reading` checks. `learning` trains a small translator. `printed` holds the numbers that texts
print, and recomputes them. `examples` has a TOML file for the words of each example, which `words`
reads, and a module for its numbers.
"""
