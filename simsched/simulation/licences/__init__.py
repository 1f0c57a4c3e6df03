"""Licences: counted resources that are not on nodes.  Begin with `licence_pools`."""
