"""Record and replay of any code: noise is followed through arithmetic, and outputs are frozen.

Files, lowest first: `call_sites`, `views`, `noisy_numbers`, `events`, `tape`; `questions`,
`followed_steps`, `followed_values`; `draws`; `patches`; `event_pairs`, `noise_shifts`, `spent`,
`answer_costs`, `costs`; `comparisons`, `findings`, `records`, `runs`; `verdict`, `explanations`,
`redrawn_coins`; `record`.
"""
