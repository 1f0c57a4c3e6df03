"""The mechanics of the command line: the parser, output, messages, signals, the progress line."""
