"""Attention worked out number by number: everything behind `pellucid attend`.

`sheet` defines the parts of an example. `written_stages` writes an attention and its arithmetic
down, `layer` the rest of an encoder layer around it; `row` follows one row. `pages` cuts an example
into pages, and `quiz_questions` asks for its numbers. `matrices` makes an example of a file of
matrices, which `matrix_files` checks. `small_translator` trains a translator in a second. `printed`
holds the numbers that texts print, and recomputes them. `examples` has a TOML file for the words of
each example, which `sheet` reads, and a module for its numbers.
"""
