"""One interactive page of layouts: a file that fetches nothing, its data as JSON, and a policy that allows no more."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import Any

from irscope.layout.described import DescribedLayout
from irscope.render.assets import read_asset
from irscope.render.layout_figure import memory_facts, thread_facts


def render_html(layouts: Sequence[DescribedLayout], *, compared: bool = False) -> str:
    """The page. Its fragment says which layout, element, bit and colouring is shown: such a link can be sent on.

    Args:
        layouts: what it shows, one chosen at a time.
        compared: whether the first is compared with the second from the start.
    """
    style = read_asset("layout.css")
    script = read_asset("layout.js")
    data = {"compared": compared, "layouts": [_data(item) for item in layouts]}
    parts = {
        "policy": f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'",
        "title": escape(", ".join(dict.fromkeys(item.name for item in layouts))),
        "style": style,
        "script": script,
        # Nothing in it can end the element it stands in.
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028"),
    }
    page = read_asset("layout.html")
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(item: DescribedLayout) -> dict[str, Any]:
    names = dict.fromkeys((item.name, item.encoding.title))
    result: dict[str, Any] = {
        "name": f"{item.name} {item.shape_text}",
        "title": " · ".join([*names, f"{item.shape_text} {' '.join(item.elements[:3])}"]),
        "parameters": item.parameters,
        "facts": [*thread_facts(item), *memory_facts(item)],
        "reason": item.reason,
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
