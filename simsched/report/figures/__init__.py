"""Static figures by matplotlib (PNG, SVG, PDF); `figures.KINDS` is the table of them."""
