"""The orders in which waiting jobs are considered: `order` is the table, `fairshare` has a memory."""
