"""Record and replay of any code: noise is followed through arithmetic, and outputs are frozen.

Files, lowest first: `call_sites`, `views`, `tape`; `followed_steps`, `followed_values`; `draws`;
`patches`; `shared_parts`, `noise_shifts`, `costs`; `comparisons`, `findings`, `records`; `verdict`,
`explanations`, `runs`, `redrawn_coins`; `record`.
"""
