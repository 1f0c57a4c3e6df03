"""HTML reports with interactive charts by Bokeh: `page` is the entrance, one module per section."""
