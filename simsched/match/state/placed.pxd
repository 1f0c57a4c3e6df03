# `placed.py` is compiled, without types of its own; without a compiler nothing reads this file.
