"""Families: finite sets of data distributions that an accurate algorithm must tell apart.

Assouad's cubes, packings, fingerprinting codes (chapter on lower bounds of Duchi, Jordan &
Wainwright 2018).  It may import only `information`; `decoding`, `bounds` and the rooms above
import it.
"""
