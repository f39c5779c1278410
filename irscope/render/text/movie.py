"""A movie as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from irscope.analysis.movie.model import Frame, Movie
from irscope.model.capture import Capture

__all__ = ["movie_json"]


def movie_json(capture: Capture, movie: Movie) -> dict[str, Any]:
    """The numbers of a movie: the fields of `irscope.analysis.movie.model`."""
    return {
        "id": capture.id,
        "kernel": capture.name,
        "target": str(capture.target),
        "chosen_after": movie.chosen_after,
        "not_kept": list(movie.not_kept),
        "values": [asdict(value) | {"title": value.title} for value in movie.values],
        "frames": [_frame_json(frame) for frame in movie.frames],
    }


def _frame_json(frame: Frame) -> dict[str, Any]:
    data = asdict(frame)
    data["net"] = dict(frame.net)
    data["families"] = dict(frame.families)
    return data
