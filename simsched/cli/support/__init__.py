"""The mechanics of the command line: parser, output, messages, signals and progress lines.

Imports nothing of `simsched.cli` outside this package.
"""
