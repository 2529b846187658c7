"""Bounds: one theorem a file, from parameters to a `LowerBound` with explicit constants.

Wang & Xu (2021), Talwar, Thakurta & Zhang (2015), Cai, Wang & Zhang (2021), Duchi, Jordan &
Wainwright (2018).  It may import `decoding`, `families` and `information`; `problems`, `checks`
and `performance` import it.
"""
