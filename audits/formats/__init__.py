"""The formats of files in which a report is written: one file each, named in `report_format`.

It may import `report` and the rooms below; only `cli` imports it.
"""
