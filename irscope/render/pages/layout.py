"""One interactive page of layouts: a file that fetches nothing, its data as JSON, and a policy that allows no more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from irscope.layout.described import DescribedLayout
from irscope.memory.conflicts import first_request
from irscope.render.layout.comparison import between_facts
from irscope.render.layout.figure import memory_facts, thread_facts
from irscope.render.pages.assets import read_asset
from irscope.render.pages.page import render_page


def render_html(layouts: Sequence[DescribedLayout], *, compared: bool = False, compiler_ways: int | None = None) -> str:
    """The page. Its fragment says which layout, element, bit and colouring is shown: such a link can be sent on.

    Args:
        layouts: what it shows, one chosen at a time.
        compared: whether the first is compared with the second from the start.
        compiler_ways: the compiler's count of bank conflicts between these two, plus one, if it is known.
    """
    data: dict[str, Any] = {"compared": compared, "layouts": [_data(item) for item in layouts]}
    if compared:
        first, second = layouts[:2]
        data["facts"] = [between_facts(*pair, compiler_ways) for pair in ((first, second), (second, first))]
        threads, memory = first.threads or second.threads, first.memory or second.memory
        store, target = first.threads is not None, first.target
        request = first_request(threads, memory, store=store, target=target) if threads and memory else ()
        data["request"] = sorted(request)
    # Nothing in it can end the element it stands in.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    title = ", ".join(dict.fromkeys(item.name for item in layouts))
    body = read_asset("layout.html").replace("{{data}}", text)
    return render_page(title, body, styles=("layout.css",), script="layout.js")


def _data(item: DescribedLayout) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": f"{item.name} {item.shape_text}",
        "title": item.title,
        "parameters": item.parameters,
        "facts": [*thread_facts(item), *memory_facts(item)],
        "reason": item.row.reason,
    }
    if item.layout is None:
        return result
    result["out_dims"] = [list(pair) for pair in item.layout.out_dims]
    if (threads := item.threads) is not None:
        vector = max((threads.contiguous(dimension) for dimension in range(len(threads.shape))), default=1)
        bases = {name: threads.layout.vectors(name) for name in ("register", "lane", "warp", "block")}
        return result | {"bases": bases, "vector": vector}
    if (memory := item.memory) is not None:
        bases = {name: memory.layout.vectors(name) for name in ("offset", "block")}
        return result | {
            "bases": bases,
            "element_bits": memory.element_bits,
            "padding": memory.padding,
            "banks": memory.banks,
        }
    return result | {
        "bases": {name: item.layout.vectors(name) for name in ("column", "row")},
        "banks": 32,
        "element_bits": 32,
    }
