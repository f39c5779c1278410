"""The pages beside the report: one theme, and a policy that allows what they hold and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import irscope.render
from irscope.render.pages.assets import read_asset
from irscope.render.pages.page import render_page

# --paper: light-dark(#ffffff, #0d1117);
COLOR_PAIR = re.compile(r"(--[\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
# --paper: #ffffff;
COLOR_OF = re.compile(r"(--[\w-]+): (#[0-9a-f]{6});")


def test_the_pages_have_the_colours_of_the_report() -> None:
    viewer = Path(irscope.render.__file__).parent / "report/frontend/src/styles/theme.css"
    colors = {name: (light, dark) for name, light, dark in COLOR_PAIR.findall(viewer.read_text("utf-8"))}
    light, dark = (dict(COLOR_OF.findall(half)) for half in read_asset("theme.css").split("@media"))
    assert len(light) > 8
    assert {name: (light[name], dark[name]) for name in light} == {name: colors[name] for name in light}
    assert light.keys() == dark.keys()


def test_every_colour_that_a_page_uses_is_in_the_theme() -> None:
    known = {name for name, _ in COLOR_OF.findall(read_asset("theme.css"))}
    for name in ("compare.css", "ablation.css", "ablation.js"):
        text = read_asset(name)
        assert set(re.findall(r"var\((--[\w-]+)\)|style\(\"(--[\w-]+)\"\)", text)) <= {
            pair for one in known for pair in ((one, ""), ("", one))
        }, name


def test_the_policy_allows_the_page_s_own_style_and_script() -> None:
    html = render_page("a <b>", "<p>text</p>", styles=("compare.css",), script="ablation.js")
    assert "<title>a &lt;b&gt;</title>" in html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert "script-src" not in render_page("a", "", styles=())
