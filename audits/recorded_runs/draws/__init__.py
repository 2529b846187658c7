"""What draws within a recorded run: generators, and calls of mechanisms.

Files, lowest first: `draw_tables`, `record_coins`, `parametric_draws`, `numpy_draws`,
`python_draws`, `torch_draws`; `declared_calls`, `library_calls`.
"""
