"""Static figures by matplotlib: PNG, SVG and PDF. `figures` is the table of them."""
