"""The examples of the manual, the README and CONTRIBUTING; `pages` plays them."""
