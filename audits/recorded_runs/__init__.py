"""Record and replay of any code: noise is followed through arithmetic, and outputs are frozen.

Files, lowest first: `call_sites`, `events`; `tape`; `views`, `followed_steps`, `followed_values`;
`draw_tables`, `parametric_draws`, `numpy_draws`, `python_draws`, `declared_calls`, `library_calls`;
`patches`; `shared_parts`, `noise_shifts`, `costs`; `comparisons`; `record`.
"""
