"""The reason why a plan has no proof."""


class NoRoad(Exception):
    """No road leads to a proof; its text says why."""
