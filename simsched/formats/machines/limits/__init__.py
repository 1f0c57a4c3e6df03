"""Limits of users, accounts, queues and QoS in the files of sites: sacctmgr, flux-accounting, PBS.

Each reader returns rules as tables of ``[[limits]]``; begin with `limit_tables`. Imports what
`formats.machines` imports, and its wing `shared`.
"""
