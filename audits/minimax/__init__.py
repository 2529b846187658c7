"""Minimax lower bounds: the least error of any private algorithm, with the hard family behind it.

Rooms, lowest first: `information`, `families`, `decoding`, `bounds`, `problems`, then `checks` and
`performance`.  Imports run towards the lower rooms.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
