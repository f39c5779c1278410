"""`irscope ablate`: switches each pass off in turn and tabulates the effect."""

from __future__ import annotations

from dataclasses import replace

from irscope.analysis.passes.ablation import SORT_KEYS, Ablation, SortKey
from irscope.cli import app, options
from irscope.cli.ablate.run import AblationOptions, AblationRun
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import STANDARD_OUTPUT, Destination, with_destination
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.talk import say
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.interruption import Interrupted, exit_code
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.searches.ablation import render_ablation


@app.command(rich_help_panel="Effect of passes")
@recorded(without=("snapshots", "llvm", "jobs"))
@with_destination
@grouped("wanted", AblationOptions)
def ablate(
    subject: options.Subject = None, *, wanted: AblationOptions, to: Destination, record_options: RecordingOptions
) -> int:
    """Switch each pass off in turn and tabulate the effect: what fails, what differs, and the resources used.

    For a script on a GPU, also whether the result is the same, and the time. Compiled variants are kept: after an
    interruption the same command continues. -o FILE.html writes a page, -o FILE.json JSON.
    """
    key = _sort_key(wanted.sort)
    run = AblationRun(subject, replace(record_options, disassemble=False), wanted)
    try:
        ablation = run.run()
    except (KeyboardInterrupt, Interrupted) as stop:
        if run.ablation is None:
            raise
        _write(run, run.ablation, key, wanted.every, to)
        to_go = f" with {run.ablation.missing} variants to go" if run.ablation.missing else ""
        say(f"interrupted{to_go}; the same command goes on from there.")
        return exit_code(stop)
    _write(run, ablation, key, wanted.every, to)
    return 0


def _sort_key(text: str | None) -> SortKey | None:
    if text is None:
        return None
    key = text.replace("-", "_")
    if key not in SORT_KEYS:
        raise UsageError(f"--sort {text!r}: write one of {', '.join(SORT_KEYS)}.")
    return key


def _write(run: AblationRun, ablation: Ablation, sort: SortKey | None, every: bool, to: Destination) -> None:
    suffix = to.path.suffix if to.path is not None else ""
    if is_page(to.path) and not to.as_json and run.baseline is not None:
        from irscope.render.report.results.ablation import ablation_results

        emit_report([run.baseline], {"tab": "results"}, to.path, results=ablation_results(ablation, run.baseline, sort))
    else:
        replace(to, as_json=to.as_json or suffix == ".json").emit(
            ablation.as_json,
            lambda width, color: render_ablation(ablation, sort=sort, every=every, width=width, color=color),
        )
    if to.path is not None and to.path != STANDARD_OUTPUT:
        say(f"wrote {to.path}")
