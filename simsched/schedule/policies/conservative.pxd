# `conservative.py` is compiled; without a compiler nothing reads this file.
