"""Random bits and integer noise whose distribution is exactly the stated one.

Behind it stand Mironov (2012), who shows that noise from ordinary floats can reveal the value,
and the exact samplers of Canonne, Kamath & Steinke (2020).  Mechanism files and
`mechanisms.families` import this room; it imports only the accountant's randomness, numerics and
errors.
"""
