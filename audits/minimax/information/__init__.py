"""Information: how much private reports reveal of a point, in nats.

Strong data processing (Duchi, Jordan & Wainwright 2018) with sharper constants.  The lowest room
of the lower bounds: every other room may import it.
"""
