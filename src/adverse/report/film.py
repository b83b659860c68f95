"""A failed stop as a short film: on the left the ground truth drives, on the right the SUT under a mutation.

Each side shows the last image its robot passed, with boxes, its speed, and how far away the nearest person
is; the strip below shows both robots on the path, and where somebody's safety radius begins. All numbers are
those of `analysis.failed_stop`. The film is an animated WebP and its bytes depend on the run alone.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from adverse.analysis.failed_stop import MOMENTS_HZ, FailedStop, Moment, State, failed_stop, moments
from adverse.errors import AdverseError
from adverse.report.closed_loop import verdict
from adverse.report.pictures import Looker
from adverse.store.read import Store
from adverse.text import counted, shown
from adverse.types import Image

SIDE_PX, GAP_PX, HEAD_PX, NUMBERS_PX, STRIP_PX = 320, 6, 22, 22, 62
TALLEST_PX = 320
MOST_BYTES = 1_500_000
QUALITIES = (70, 50, 35, 20)
"""Of the WebP; the first that keeps the film below its size is taken."""
HOLD_S = 2.0
"""How long the last picture stays."""
INK, PAPER, SOFT, RAIL = (240, 240, 240), (22, 24, 27), (165, 169, 174), (70, 76, 84)
TRUTH, SUT, DANGER, PERSON = (110, 190, 255), (255, 176, 0), (255, 84, 84), (255, 255, 255)
BEYOND = "last image of the log; the robot is past it"
Colour = tuple[int, int, int]
Boxes = Mapping[str, NDArray[np.floating]]
"""By the id of a frame."""


@dataclass(frozen=True)
class Film:
    """The film and a still of it, in bytes; what happens in words."""

    data: bytes
    poster: bytes
    width: int
    height: int
    frames: int
    sut: str
    setting: str
    words: str
    description: str
    """For those who cannot see it."""
    legend: tuple[tuple[str, str], ...]
    """The kinds of boxes in it, as classes of the page's style, and what they mean."""

    @property
    def source(self) -> str:
        """The film as a data URI."""
        return f"data:image/webp;base64,{base64.b64encode(self.data).decode()}"

    @property
    def poster_source(self) -> str:
        """The still as a data URI."""
        return f"data:image/webp;base64,{base64.b64encode(self.poster).decode()}"


def film_of(looker: Looker) -> Film | None:
    """Return the film of a run; None where no stop fails, or its frames cannot be shown."""
    failed = failed_stop(looker.store)
    if failed is None:
        return None
    story = moments(failed.driven)
    try:
        pictures = film_frames(failed, story, looker.image, looker.store)
    except AdverseError:
        return None
    data = _encoded(pictures)
    poster = _still(pictures[_telling(story)])
    width, height = pictures[0].size
    return Film(
        data,
        poster,
        width,
        height,
        len(pictures),
        failed.driven.sut,
        failed.driven.setting,
        _words(failed),
        _description(failed, story),
        _legend(looker.store, failed, story),
    )


def film_frames(
    failed: FailedStop, story: Sequence[Moment], image: Callable[[str, str], Image], store: Store
) -> list[Pillow.Image]:
    """Return one picture for each moment; `image` gives a frame by its id under a setting."""
    driven, used = failed.driven, _frames_seen(failed, story)
    people, ignored = (_true_boxes(store, used, ignored=ignored) for ignored in (False, True))
    found = _detected(store, failed, used)
    clean = store.run.baseline.id
    opened = cache(image)
    drawn = []
    span = _span(story)
    for moment in story:
        whole = _sheet(failed, opened)
        title = f"{driven.sut} drives: {failed.setting_words}"
        sides: tuple[tuple[State, str, str, Colour, tuple[Boxes, ...]], ...] = (
            (moment.truth, clean, "the ground truth drives", TRUTH, (people, ignored)),
            (moment.sut, driven.setting, title, SUT, (people, ignored, found)),
        )
        for number, (state, setting, name, colour, boxes) in enumerate(sides):
            left = number * (SIDE_PX + GAP_PX)
            _draw_side(whole, left, name, colour, state, failed)
            in_sight = (0, 0)
            if state.image >= 0:
                frame = driven.frames[state.image]
                in_sight = len(people[frame]), len(ignored[frame])
                _draw_camera(whole, left, opened(frame, setting), state, [kind[frame] for kind in boxes])
            _draw_numbers(whole, left, numbers(state, *in_sight), state, failed)
        _draw_strip(whole, moment, span, failed)
        drawn.append(whole)
    return drawn


def _frames_seen(failed: FailedStop, story: Sequence[Moment]) -> list[str]:
    frames = failed.driven.frames
    return sorted({frames[state.image] for one in story for state in one[1:] if state.image >= 0})


def _legend(store: Store, failed: FailedStop, story: Sequence[Moment]) -> tuple[tuple[str, str], ...]:
    ignored = _true_boxes(store, _frames_seen(failed, story), ignored=True)
    soft = (("ignored", "marked ignore"),) if any(map(len, ignored.values())) else ()
    return ("truth", "people"), *soft, ("found", "detected")


def _true_boxes(store: Store, frames: Sequence[str], *, ignored: bool) -> Boxes:
    truth, number = store.truth, {frame: at for at, frame in enumerate(store.frames.ids)}
    kept = truth.ignore if ignored else ~truth.ignore
    return {frame: truth.boxes[(truth.frame == number[frame]) & kept] for frame in frames}


def _detected(store: Store, failed: FailedStop, frames: Sequence[str]) -> Boxes:
    """Return the SUT's boxes that count, those from the threshold on, by frame."""
    driven = failed.driven
    answers = store.answers(driven.sut, settings=[driven.setting], frames=frames)[driven.setting]
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    counts = answers.scores >= np.float32(driven.threshold)
    number = {name: at for at, name in enumerate(store.frames.ids)}
    return {name: answers.boxes[counts & (frame == number[name])] for name in frames}


def _sheet(failed: FailedStop, image: Callable[[str, str], Image]) -> Pillow.Image:
    first = image(failed.driven.frames[0], failed.clean.setting)
    height = _camera_size(first)[1]
    return Pillow.new("RGB", (2 * SIDE_PX + GAP_PX, HEAD_PX + height + NUMBERS_PX + STRIP_PX), PAPER)


def _camera_size(image: Image) -> tuple[int, int]:
    height, width = image.shape[:2]
    scale = min(SIDE_PX / width, TALLEST_PX / height)
    return round(width * scale), round(height * scale)


def _draw_side(
    whole: Pillow.Image,
    left: int,
    title: str,
    colour: Colour,
    state: State,
    failed: FailedStop,
) -> None:
    draw = ImageDraw.Draw(whole)
    draw.rectangle((left, 0, left + SIDE_PX - 1, HEAD_PX - 2), fill=DANGER if state.violated else PAPER)
    text = shown(title)
    if state.violated:
        inside = state.distance_m < failed.safety_radius_m
        text = f"{'inside' if inside else 'went through'} the safety radius ({failed.safety_radius_m:g} m)"
    ink = PAPER if state.violated else colour
    draw.text((left + 6, 3), _cut(text, SIDE_PX - 10), fill=ink, font=_font(14))


def _draw_camera(
    whole: Pillow.Image, left: int, image: Image, state: State, boxes: Sequence[NDArray[np.floating]]
) -> None:
    size = _camera_size(image)
    picture = Pillow.fromarray(np.ascontiguousarray(image)).resize(size, Pillow.Resampling.BILINEAR)
    place = left + (SIDE_PX - size[0]) // 2
    whole.paste(picture, (place, HEAD_PX))
    draw = ImageDraw.Draw(whole)
    scale = size[0] / image.shape[1]
    for kind, colour, width in zip(boxes, (PERSON, SOFT, SUT), (1, 1, 2), strict=False):
        for x0, y0, x1, y1 in (kind * scale).round().astype(int).tolist():
            corners = (place + x0, HEAD_PX + y0, place + max(x1 - 1, x0), HEAD_PX + max(y1 - 1, y0))
            if state.recorded:
                draw.rectangle(corners, outline=colour, width=width)


def _draw_numbers(
    whole: Pillow.Image, left: int, words: tuple[str, str], state: State, failed: FailedStop
) -> None:
    draw = ImageDraw.Draw(whole)
    top = whole.size[1] - STRIP_PX - NUMBERS_PX
    speed, distance = words
    near = state.distance_m < failed.safety_radius_m
    draw.text((left + 6, top + 3), speed, fill=INK, font=_font(14))
    draw.text((left + 76, top + 3), distance, fill=DANGER if near else INK, font=_font(14))
    if not state.recorded:
        draw.rectangle((left, top - NUMBERS_PX, left + SIDE_PX - 1, top - 1), fill=PAPER)
        draw.text((left + 6, top - NUMBERS_PX + 3), BEYOND, fill=SOFT, font=_font(14))


def numbers(state: State, people: int = 0, ignored: int = 0) -> tuple[str, str]:
    """Return what is written on the picture: the speed, and how far away the nearest person is.

    `people` and `ignored` count those whom the image shows and that count, or are marked ignore: somebody
    whose place is not known, or who does not count, is in sight all the same.
    """
    speed = "stopped" if state.stopped else f"{state.speed_mps:.1f} m/s"
    if math.isfinite(state.distance_m):
        return speed, f"{state.distance_m:.1f} m to the nearest person"
    if people:
        return speed, "distance not known"
    if ignored:
        return speed, f"{'a person' if ignored == 1 else f'{ignored} people'} marked ignore"
    return speed, "nobody in sight"


def _span(story: Sequence[Moment]) -> tuple[float, float]:
    """Return the part of the path that the strip shows."""
    places = [state.position_m for moment in story for state in moment[1:]]
    ends = [state.danger_m for moment in story for state in moment[1:] if math.isfinite(state.danger_m)]
    return min(places) - 0.5, max([*places, *(end + 1.0 for end in ends[-1:])]) + 0.5


def _draw_strip(whole: Pillow.Image, moment: Moment, span: tuple[float, float], failed: FailedStop) -> None:
    draw = ImageDraw.Draw(whole)
    width, height = whole.size
    left, right, top = 12, width - 12, height - STRIP_PX
    stop = float(failed.driven.by_truth.position_m[-1])

    def across(place_m: float) -> int:
        share = (min(max(place_m, span[0]), span[1]) - span[0]) / (span[1] - span[0])
        return round(left + share * (right - left))

    middle = top + 28
    draw.line((left, middle, right, middle), fill=RAIL, width=6)
    danger = moment.sut.danger_m
    if math.isfinite(danger):
        draw.line((across(danger), middle, right, middle), fill=DANGER, width=6)
        draw.text((across(danger), middle + 17), "safety radius", fill=DANGER, font=_font(12), anchor="la")
    draw.line((across(stop), middle - 20, across(stop), middle + 30), fill=TRUTH, width=2)
    draw.text((across(stop) - 4, middle + 17), "where to stop", fill=TRUTH, font=_font(12), anchor="ra")
    for state, colour, above in ((moment.truth, TRUTH, True), (moment.sut, SUT, False)):
        x = across(state.position_m)
        tip, end = (middle - 4, middle - 16) if above else (middle + 4, middle + 16)
        draw.polygon([(x, tip), (x - 7, end), (x + 7, end)], fill=colour)
    draw.text((left, middle + 17), f"{moment.time_s:.1f} s", fill=SOFT, font=_font(12))


def _cut(text: str, width: int) -> str:
    while text and _font(14).getlength(text) > width:
        text = text[:-2].rstrip() + "…"
    return text


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _encoded(pictures: Sequence[Pillow.Image]) -> bytes:
    """Return an animated WebP, at the best quality that is small enough (at the lowest, if none is)."""
    step = round(1000 / MOMENTS_HZ)
    durations = [*[step] * (len(pictures) - 1), round(1000 * HOLD_S)]
    data = b""
    for quality in QUALITIES:
        file = io.BytesIO()
        first, *rest = pictures
        first.save(
            file,
            "WEBP",
            save_all=True,
            append_images=rest,
            duration=durations,
            loop=0,
            quality=quality,
            method=4,
            minimize_size=False,
        )
        data = file.getvalue()
        if len(data) <= MOST_BYTES:
            break
    return data


def _still(picture: Pillow.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=QUALITIES[0], method=4)
    return file.getvalue()


def _telling(story: Sequence[Moment]) -> int:
    """Return the moment for the still: the SUT first moves inside the safety radius.

    Where the log ends before that, the last moment that both robots have images of; never one beyond them.
    """
    seen = [number for number, (_, *both) in enumerate(story) if all(map(_in_view, both))]
    inside = [number for number in seen if story[number].sut.violated]
    return inside[0] if inside else seen[-1] if seen else 0


def _in_view(state: State) -> bool:
    return state.recorded and state.image >= 0


def _words(failed: FailedStop) -> str:
    driven = failed.driven
    text = f"{shown(driven.log)}, {failed.setting_words}: {verdict(driven)}; clean, in time"
    return f"{text}. 1 of {counted(failed.of, 'lost stop')}."


def _description(failed: FailedStop, story: Sequence[Moment]) -> str:
    sut = [moment.sut for moment in story]
    nearest = min(state.distance_m for state in sut)
    text = (
        f"Film of {(len(story) - 1) / MOMENTS_HZ:.0f} s: {shown(failed.driven.sut)} drives {_words(failed)} "
    )
    text += f"The ground truth stops at {failed.driven.by_truth.position_m[-1]:.1f} m of the path"
    if math.isfinite(nearest):
        text += f"; the robot that {shown(failed.driven.sut)} drives comes within {nearest:.1f} m of a person"
    inside = next((state for state in sut if state.violated), None)
    if inside is not None:
        text += f", at {inside.speed_mps:.1f} m/s inside the safety radius of {failed.safety_radius_m:g} m"
    return f"{text}; at {failed.driven.level:.2g} false positives per image."
