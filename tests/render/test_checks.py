"""What came of a check as SARIF, workflow commands and Markdown, also where a kernel's texts mean to break them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from irscope.analysis.checks.results import Checked, CheckOutcome, Report
from irscope.analysis.checks.subject import Breach
from irscope.render.checks import RULES, render_github, render_markdown, render_report, report_json, sarif_log

ROOT = Path("/checkout")
HOSTILE = "a|b\n::error::x\x1b[2J <script>`````` %0A, 100%"


def breach(rule: str = "max-regs", text: str = "takes 65 registers", line: int = 7) -> Breach:
    return Breach(
        rule,
        f"--{rule} 64",
        text,
        (("/checkout/my kernels/matmul.py", line),),
        "acc = tl.dot(a, b)",
        ("at most 60 of them hold values", "b"),
        None,
        "ttgir",
        ((4, "%a = tt.load"), (5, "%b = tt.dot")),
        5,
    )


def checked(*breaches: Breach, id_: str = "0123456789abcdef", differs: str = "") -> Checked:
    outcomes = (CheckOutcome("compiles", "compiles", ()), CheckOutcome("max-regs", "--max-regs 64", breaches))
    return Checked(id_, "matmul", "cuda:90", "/checkout/my kernels/matmul.py", 3, differs, outcomes)


REPORT = Report(
    (
        checked(breach(), differs="BLOCK=64"),
        checked(breach(), breach("golden", HOSTILE, 9), id_="f" * 16, differs="BLOCK=32"),
        checked(id_="e" * 16),
    ),
    ("matmul (cuda:90): registers 70 → 60",),
    ("not in the baseline: softmax cuda:90 n=i32",),
)

# What irscope writes of SARIF 2.1.0, and nothing else, with the types and the required properties of its specification
# (OASIS; sarifLog 3.13, run 3.14, tool 3.18, invocation 3.20, result 3.27, location 3.28, physicalLocation 3.29, region
# 3.30, reportingDescriptor 3.49): what fits it fits the schema of OASIS, which allows more.
TEXT = {"type": "string", "minLength": 1}
WHOLE = {"type": "integer", "minimum": 0}


def closed(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "required": required.split(), "properties": properties, "additionalProperties": False,
    }  # fmt: skip


def listed(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


MESSAGE = closed("text", text=TEXT)
REGION = closed("startLine", startLine={"type": "integer", "minimum": 1}, snippet=MESSAGE)
ARTIFACT = closed("uri", uri={"type": "string", "format": "uri-reference", "pattern": r"^[^ <>|`\\]+$"})
LOCATION = closed(
    "logicalLocations",
    physicalLocation=closed("artifactLocation region", artifactLocation=ARTIFACT, region=REGION),
    logicalLocations=listed(closed("name", name=TEXT, kind={"enum": ["function"]}), minItems=1),
)
RESULT = closed(
    "message ruleId ruleIndex level locations partialFingerprints",
    ruleId=TEXT,
    ruleIndex=WHOLE,
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations=listed(LOCATION, minItems=1, maxItems=1),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    properties={"type": "object"},
)
DRIVER = closed(
    "name",
    name=TEXT,
    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    informationUri={"type": "string", "pattern": r"^https?://"},
    rules=listed(closed("id", id=TEXT, shortDescription=MESSAGE), uniqueItems=True),
)
RUN = closed(
    "tool results",
    tool=closed("driver", driver=DRIVER),
    invocations=listed(closed("executionSuccessful", executionSuccessful={"type": "boolean"})),
    results=listed(RESULT),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
)
SARIF = closed("version runs", **{"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": listed(RUN)})


def test_sarif() -> None:
    log = sarif_log(REPORT, ROOT, "0.1.0")
    jsonschema.Draft7Validator(SARIF).validate(log)
    addressed = sarif_log(REPORT, ROOT, "0.1.0", "https://irscope.example")
    jsonschema.Draft7Validator(SARIF).validate(addressed)
    assert addressed["runs"][0]["tool"]["driver"]["informationUri"] == "https://irscope.example"
    (run,) = log["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    first, second = run["results"]
    assert (
        [rules[one["ruleIndex"]] for one in run["results"]]
        == ["max-regs", "golden"]
        == [one["ruleId"] for one in run["results"]]
    )
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20kernels/matmul.py"
    assert place["region"] == {"startLine": 7, "snippet": {"text": "acc = tl.dot(a, b)"}}
    assert first["properties"]["captures"] == ["0123456789abcdef", "f" * 16]
    moved = Report((checked(breach(line=90)),))
    assert (
        sarif_log(moved, ROOT, "0.1.0")["runs"][0]["results"][0]["partialFingerprints"] == first["partialFingerprints"]
    )
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert sarif_log(Report((checked(),)), ROOT, "0.1.0")["runs"][0]["results"] == []


def test_every_rule_has_a_description() -> None:
    from irscope.analysis.checks import assertions, results

    rules = {
        value.rule
        for module in (results, assertions)
        for value in vars(module).values()
        if isinstance(value, type) and isinstance(getattr(value, "rule", None), str)
    }
    assert len(rules) == 13
    assert rules - {"no-finding"} <= RULES.keys()


def test_workflow_commands_cannot_be_forged() -> None:
    text = render_github(REPORT, ROOT)
    commands = [line for line in text.splitlines() if line.startswith("::")]
    assert [line.partition(" ")[0] for line in commands] == ["::error", "::error", "::notice"]
    assert commands[0].startswith(
        "::error file=my kernels/matmul.py,line=7,title=irscope --max-regs 64::matmul (cuda:90)"
    )
    assert "%0A" in commands[0]
    assert "\x1b" not in text
    assert "100%25" in commands[1]


def test_markdown_is_a_table_and_details_that_nothing_breaks_out_of() -> None:
    text = render_markdown(REPORT, ROOT)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 4
    assert all(line.replace(r"\|", "").count("|") == 5 for line in rows)
    table, _, _ = text.partition("<details>")
    assert "<script>" not in table.replace(r"\<script", "")
    fences = [line for line in text.splitlines() if line.startswith("```") and set(line.removesuffix("text")) == {"`"}]
    assert [len(line.removesuffix("text")) for line in fences] == [3, 3, 7, 7]
    assert text.startswith("### irscope check: failed")
    assert "passed" in render_markdown(Report((checked(),)), ROOT)


def test_text_names_the_other_variants_once() -> None:
    text = render_report(REPORT, color=False)
    assert text.count("takes 65 registers") == 1
    assert "BLOCK=64  and 1 more: ffffffff" in text
    assert "> 5 | %b = tt.dot" in text
    assert "better matmul (cuda:90): registers 70 → 60" in text
    assert text.endswith("2 breaches, in 2 of 3 captures.\n")
    assert "\x1b" not in text


def test_an_assertion_that_says_nothing_of_any_capture_is_no_success() -> None:
    nothing = Report((Checked("0" * 16, "k", "cuda:90", "", 0, "", (CheckOutcome("pipelined", "--pipelined", None),)),))
    assert not nothing.passed
    assert "--pipelined applies to" in render_report(nothing, color=False)
    assert "::error" in render_github(nothing, ROOT)
    assert report_json(nothing)["vacuous"] == ["--pipelined"]
    json.dumps(report_json(REPORT))


@pytest.mark.parametrize("render", [render_github, render_markdown])
def test_a_kernel_without_a_file(render: Any) -> None:
    bare = Breach("max-regs", "--max-regs 1", "takes 2 registers")
    one = Checked("0" * 16, "k", "cuda:90", "", 0, "", (CheckOutcome("max-regs", "--max-regs 1", (bare,)),))
    assert "takes 2 registers" in render(Report((one,)), ROOT)
    jsonschema.Draft7Validator(SARIF).validate(sarif_log(Report((one,)), ROOT, "0.1.0"))
