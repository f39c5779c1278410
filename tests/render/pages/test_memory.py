"""The page of memory over time: picture and table in one file that fetches nothing."""

from __future__ import annotations

from irscope.memory.allocation import allocations_of
from irscope.render.pages.memory import memory_html
from tests.memory.cases import too_large


def test_the_page_holds_picture_table_and_notes() -> None:
    page = memory_html("kernel", allocations_of(too_large()), "Tried <nothing>.")
    assert "default-src 'none'" in page
    assert page.count("<svg") == 1
    # The policy allows the page's own style sheet only: the picture's rules stand in it.
    assert page.count("<style>") == 1
    assert ".mem-peak" in page.split("</style>")[0]
    assert "Tried &lt;nothing&gt;." in page
    assert "at peak" in page
