"""The browser that the tests of one module share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def browser():
    from tests.report.html.browser_page import Page

    page = Page()
    yield page
    page.driver.quit()
