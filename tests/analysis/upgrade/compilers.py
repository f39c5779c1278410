"""Compilers of texts, which stand in for two Tritons: each stage adds a word, of which the registers are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.upgrade.model import Asking
from irscope.model.capture import Artifact, Capture, Environment, Failure, Kernel, Launch, Resources, Target
from irscope.model.trial import Graft, Side

STAGES = ("source", "ttir", "ttgir", "llir", "ptx", "cubin")


@dataclass(frozen=True, slots=True)
class TextCompiler:
    """What one version does."""

    version: str
    costs: dict[str, int] = field(default_factory=dict[str, int])
    """Registers that a stage adds."""
    fails: str = ""
    """The stage that fails."""
    refuses: tuple[str, ...] = ()
    """The stages whose artifacts by another version it does not read."""
    forgets: str = ""
    """The stage whose artifact it does not go on from as it did in one go."""

    def compile(self, stage: str, text: str, last_stage: str = "", *, grafted: bool = True) -> Capture:
        """Compile on from the artifact of a stage."""
        made = [Artifact(stage, text)]
        failure = None
        if grafted and stage in self.refuses and f"{stage}@{self.version}" not in text:
            failure = Failure("parse", "an unknown operation", stage)
        for name in STAGES[STAGES.index(stage) + 1 :]:
            if failure is None and name == self.fails:
                failure = Failure("pass", "no", name, f"{name}:lowering#1")
            if failure is not None:
                break
            lost = " lost@1" if grafted and stage == self.forgets else ""
            text = f"{text} {name}@{self.version}+{self.costs.get(name, 0)}{lost}"
            made.append(Artifact(name, text.encode() if name == "cubin" else text))
            if name == last_stage:
                break
        registers = 100 + sum(int(word.partition("+")[2] or 0) for word in text.split())
        known = Resources(registers=registers) if failure is None and made[-1].stage == "cubin" else Resources()
        return Capture(
            Launch(Kernel("kernel", "k.py", 3), options=(("num_warps", 4),)),
            Target("cuda", "90", 32),
            artifacts=tuple(made),
            resources=known,
            environment=Environment(triton_version=self.version),
            status="failed" if failure else "ok",
            failure=failure,
        )

    def whole(self) -> Capture:
        """A compile in one go, from its own front end."""
        return self.compile("source", f"source@{self.version}+{self.costs.get('source', 0)}", grafted=False)


def answered(search: Asking[object], compilers: dict[Side, TextCompiler]) -> tuple[object, Sequence[Graft]]:
    """What a search finds, and what it asked for."""
    asked: list[Graft] = []
    answer: Capture | None = None
    while True:
        try:
            question = search.send(answer)
        except StopIteration as end:
            return end.value, asked
        asked.append(question)
        answer = compilers[question.side].compile(question.stage, question.text, question.last_stage)
        if question.resumed:
            answer = None


def with_texts(capture: Capture, **texts: str) -> Capture:
    """A capture with other artifacts."""
    made = tuple(replace(one, data=texts.get(one.stage, one.data)) for one in capture.artifacts)
    return replace(capture, artifacts=made)
