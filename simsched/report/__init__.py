"""Reports: run directories as frames, metrics, text, figures and pages.

The package reads run directories only. `columns` documents every column, `data` makes frames of the files,
`metrics` holds pure functions on these frames, and `text_report`, `export`, `groups`, `figures` and `html`
present them. `run_views`, above all of these, has the object that users hold. `data` may import `metrics`,
never the reverse. Begin with `data.tables`.
"""
