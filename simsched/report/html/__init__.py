"""HTML pages with interactive charts by Bokeh.

`page` is the entrance.  Each section has a module; `charts` makes the charts, `markup` the HTML, and
`islands` the packed data that `assets/page.js` draws.
"""
