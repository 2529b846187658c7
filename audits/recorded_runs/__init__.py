"""Record and replay of any code: noise is followed through arithmetic, and outputs are frozen.

Files, lowest first: `call_sites`, `views`, `noisy_numbers`, `events`, `tape`; `questions`,
`followed_steps`, `followed_values`; `draws`; `patches`; `comparisons`, `event_pairs`,
`noise_shifts`, `spent`, `costs`; `findings`, `records`, `held_state`, `watched_lines`, `runs`;
`verdict`, `hidden_draws`, `redrawn_coins`; `record`.
"""
