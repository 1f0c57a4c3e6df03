"""One HTML page for one run, or for several runs compared; it loads nothing from elsewhere.

`run_section` and `compare_section` make the sections, `charts` the charts, `islands` packs the columns.
The style and the script of the page are in ``assets/``.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from simsched.extras import needs
from simsched.report.section_plugins import section_markup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables
    from simsched.report.section_plugins import ReportSection


def page(runs: Sequence[RunTables], sections: Sequence[str | ReportSection] = ()) -> str:
    """Return the page of the runs; several runs are also compared.

    `sections` are those of other packages, for each run.

    Raises
    ------
    ConfigError : Bokeh is not installed (the extra ``plot``).
    """
    try:
        from simsched.report.html import compare_section, run_section
        from simsched.report.html.charts import whole_page
        from simsched.report.html.islands import Islands
    except ModuleNotFoundError as error:
        raise needs("an HTML page", error, extra="plot") from None
    charts: list[dict[str, Any]] = []
    islands = Islands()
    parts = [compare_section.comparison(runs, charts)] if len(runs) > 1 else []
    parts += [run_section.run_section(run, f"r{i}", charts, islands) for i, run in enumerate(runs)]
    parts += [section_markup(run, section) for section in sections for run in runs]
    title = runs[0].name if len(runs) == 1 else f"{len(runs)} runs compared"
    parts.append(islands.html())
    links = ['<a href="#comparison">Comparison</a>'] if len(runs) > 1 else []
    links += [f'<a href="#run-r{i}">{escape(run.name)}</a>' for i, run in enumerate(runs)]
    return whole_page(title, "".join(links), "\n".join(parts), charts)
