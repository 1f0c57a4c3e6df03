"""Run directories as data frames: `tables` is the entrance, `columns` documents every column."""
