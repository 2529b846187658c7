"""Utility: algorithms that are too accurate to be private, by decoding and by tracing.

The converse of the lower bounds of `audits.minimax` (Wang & Xu 2021), and tracing attacks (Dwork,
Smith, Steinke, Ullman & Vadhan 2015).  It may import `minimax`, `adapters` and the rooms below;
only `report`, `pytest_support` and `cli` may import it.
"""
