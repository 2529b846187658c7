"""Behind `audits.pytest_plugin`: what a test may return, and how a failure is reported.

Loaded only when a test audits a release.  It may import `runner`, `utility` and the rooms below;
only the plugin and `cli` may import it.
"""
