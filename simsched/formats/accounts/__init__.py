"""Accounts (banks) and their users, with shares and usage, from the files of accounting databases.

Begin with `account_rows`, the value of one line; `account_files` reads the formats.  Imports `text` and
`rfc` of this room.
"""
