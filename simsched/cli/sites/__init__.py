"""The verbs about the files of a site.

May import `options`, `support` and every other package.
"""
