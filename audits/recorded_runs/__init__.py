"""Record and replay of any code: noise is followed through arithmetic, and outputs are frozen.

Files, lowest first: `call_sites`, `events`; `tape`; `views`, `followed_steps`, `followed_values`;
`draws`; `patches`; `shared_parts`, `noise_shifts`, `costs`; `comparisons`, `findings`;
`public_draws`, `records`, `other_data`; `verdict`, `explanations`, `runs`; `record`.
"""
