"""A capture that loads, and does what harm a text can wherever one may stand."""

from __future__ import annotations

from dataclasses import replace

from irscope.model.capture import Capture, Environment, Failure, Kernel, PassSnapshot, SourceFile
from irscope.model.layout import LayoutMap, LayoutRow

CODES = "\x1b[5;41m\x1b]0;owned\x07\x1b]8;;http://x\x1b\\\x9b31m\x00\x08\r\u202e\u2066\u200b\ufeff\udc9b"
"""A blinking colour, a window title, a link, an 8-bit control, a backspace, a return, bidi overrides, hidden signs."""
MARKUP = (
    "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    "</style><style>*{background:url(http://x/)}</style><svg onload=document.title='owned'></svg>"
    "<a href=javascript:document.title='owned'>\"'`${1}\u2028\u2029]]>--><!-- &lt; \\l|{}"
)
PAYLOAD = CODES + MARKUP


def with_payload(capture: Capture, *, failed: bool = False) -> Capture:
    """A real capture with the payload in its names, texts and notes."""
    bad = PAYLOAD
    launch = replace(
        capture.launch,
        kernel=Kernel(f"{capture.name}{bad}", f"/home/{bad}.py", 1, f"def f():\n    '''{bad}'''\n", 1),
        signature=(*capture.launch.signature, (bad, bad)),
        constants=(*capture.launch.constants, (bad, bad)),
        attributes=(*capture.launch.attributes, (bad, bad)),
        options=(*capture.launch.options, (bad, bad)),
    )
    return replace(
        capture,
        launch=launch,
        artifacts=tuple(
            replace(item, data=_spoilt(item.data)) if isinstance(item.data, str) else item for item in capture.artifacts
        ),
        snapshots=tuple(_snapshot(item) for item in capture.snapshots),
        layouts=tuple(_row(row) for row in capture.layouts),
        environment=Environment(triton_version=bad, command=bad, tools=((bad, bad),), gpu=bad, date=bad),
        sources=(SourceFile(bad, bad), *(SourceFile(item.path, _spoilt(item.text)) for item in capture.sources)),
        status="failed" if failed else "ok",
        failure=Failure("pass", bad, "ttgir", f"ttgir:{bad}#1", bad) if failed else None,
        notes=(bad,),
        metadata=(*capture.metadata, (bad, bad)),
    )


def _spoilt(text: str) -> str:
    """The payload as a comment of every seventh line, and within the first string."""
    lines = text.splitlines()
    one_line = PAYLOAD.replace("\r", "")
    lines[::7] = [f"{line} // {one_line}" for line in lines[::7]]
    return "\n".join(lines).replace('"', f'"{one_line}', 1) + "\n"


def _snapshot(snapshot: PassSnapshot) -> PassSnapshot:
    text = None if snapshot.text is None else _spoilt(snapshot.text)
    return replace(snapshot, name=f"{snapshot.name}{PAYLOAD}", argument=PAYLOAD, options=PAYLOAD, text=text)


def _row(row: LayoutRow) -> LayoutRow:
    answer = row.answer
    answer = replace(answer, note=PAYLOAD) if isinstance(answer, LayoutMap) else replace(answer, message=PAYLOAD)
    return replace(row, alias=f"{row.alias}{PAYLOAD}", encoding=f"{row.encoding}{PAYLOAD}", answer=answer)
