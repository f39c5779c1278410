"""One report with something in every view, and the addresses of its views."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from irscope.render.report.page import render_report
from irscope.render.report.results import ablation_results
from tests.render.text.test_searches import ABLATION, CHANGED
from tests.report_browser.captures import attention, failed, predicted, softmax

VIEWS = (
    "results",
    "overview",
    "overview&c=4",
    "passes&pass=17",
    "passes&pass=17&side=1",
    "stages",
    "layouts",
    "memory&c=3",
    "time&c=5",
    "movie",
    "graph",
    "graph&of=passes",
    "compare",
    "compare&a=1&b=2&stage=llir",
)


@lru_cache
def rich() -> str:
    """The page of two softmaxes, an attention with its launch, one that failed, one of a library, and an ablation."""
    capture = softmax()
    label = next(one.label for one in capture.snapshots if one.changed)
    results = ablation_results(
        replace(ABLATION, variants=(replace(CHANGED, off=(label,)), *ABLATION.variants[1:])), capture
    )
    return render_report([capture, softmax(8), attention(), failed(), predicted()], results=results)
