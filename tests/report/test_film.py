"""The film of a failed stop: small, the same bytes each time, with the numbers of the analysis."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageDraw
from playwright.sync_api import Browser

from adverse.analysis.failed_stop import MOMENTS_HZ, Moment, failed_stop, moments
from adverse.analysis.results import read_summary
from adverse.report import film as film_module
from adverse.report.film import HOLD_S, MOST_BYTES, Film, film_of, numbers
from adverse.report.first_screen import first_screen
from adverse.report.page import FILM, hazards_of, write_report
from adverse.report.pictures import Looker
from adverse.store.finished_run import finished
from adverse.store.seal_list import read_seals
from adverse.types import Image
from html_reading import read


def drawn_scene(frame: str, setting: str) -> Image:
    image = np.full((96, 128, 3), 60 if setting == "identity" else 120, np.uint8)
    image[:, :: max(2, len(frame) % 7)] += 40
    return image


@pytest.fixture
def looker(driven: Path, monkeypatch: pytest.MonkeyPatch) -> Looker:
    """A run without images, seen through a Looker that draws them."""
    monkeypatch.setattr(Looker, "image", lambda _self, frame, setting: drawn_scene(frame, setting))
    monkeypatch.setattr(Looker, "why_not", lambda _self: None)
    return Looker(finished(driven))


@pytest.fixture
def story(looker: Looker) -> list[Moment]:
    failed = failed_stop(looker.store)
    assert failed is not None
    return moments(failed.driven)


def made(looker: Looker) -> Film:
    film = film_of(looker)
    assert film is not None
    return film


def test_it_has_a_picture_for_every_moment_and_stays_on_the_last(looker: Looker, story: list[Moment]) -> None:
    film = made(looker)
    assert film.frames == len(story)
    opened: Any = Pillow.open(io.BytesIO(film.data))
    assert opened.format == "WEBP"
    assert opened.size == (film.width, film.height)
    lasting = 0
    for number in range(opened.n_frames):
        opened.seek(number)
        opened.load()
        lasting += opened.info["duration"]
    step = round(1000 / MOMENTS_HZ)
    assert lasting == pytest.approx((len(story) - 1) * step + 1000 * HOLD_S, abs=1)
    assert len(film.data) <= MOST_BYTES
    assert Pillow.open(io.BytesIO(film.poster)).size == opened.size


def test_the_same_run_gives_the_same_bytes(looker: Looker) -> None:
    assert made(looker) == made(looker)


def test_what_is_written_on_it_is_what_the_analysis_says(
    looker: Looker, story: list[Moment], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    text = ImageDraw.ImageDraw.text

    def noted(self: Any, place: Any, words: Any, *rest: Any, **more: Any) -> None:
        written.append(words)
        text(self, place, words, *rest, **more)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    film_module.film_of(looker)
    wanted = [words for moment in story for state in moment[1:] for words in numbers(state, people=1)]
    assert [words for words in written if words in set(wanted)] == wanted
    last = story[-1].sut
    assert numbers(last)[1] == f"{last.distance_m:.1f} m to the nearest person"
    assert f"{story[0].time_s:.1f} s" in written


@pytest.mark.parametrize(
    ("people", "ignored", "words"),
    [
        (0, 0, "nobody in sight"),
        (1, 2, "distance not known"),
        (0, 1, "a person marked ignore"),
        (0, 3, "3 people marked ignore"),
    ],
)
def test_somebody_whose_distance_is_not_known_is_in_sight(
    story: list[Moment], people: int, ignored: int, words: str
) -> None:
    state = story[-1].sut
    assert numbers(state._replace(distance_m=math.inf), people, ignored)[1] == words
    assert numbers(state, people, ignored) == numbers(state)


def test_people_marked_ignore_are_drawn_and_told(looker: Looker, monkeypatch: pytest.MonkeyPatch) -> None:
    people, ignored, found = ("truth", "people"), ("ignored", "marked ignore"), ("found", "detected")
    assert made(looker).legend == (people, found)
    truth = looker.store.truth
    nobody = replace(truth, ignore=np.ones_like(truth.ignore))
    known = failed_stop(looker.store)
    monkeypatch.setattr(film_module, "failed_stop", lambda _store: known)
    monkeypatch.setitem(vars(looker.store), "truth", nobody)
    assert made(looker).legend == (people, ignored, found)


def test_the_caption_says_of_how_many_it_is_one_and_a_driven_first_screen_has_few_words(
    looker: Looker,
) -> None:
    failed = failed_stop(looker.store)
    assert failed is not None
    caption = made(looker).words
    assert f"1 of {failed.of} lost stop" in caption
    summary, run = read_summary(looker.store), looker.store.run
    first = first_screen(summary, run, {}, None, hazards_of(looker))
    assert first.stops is not None
    words = [caption, first.stop_words, first.untested, *(figure.words for figure in first.figures[:1])]
    prose = [word for word in " ".join(words).split() if any(letter.isalpha() for letter in word)]
    assert 20 < len(prose) <= 50, words  # ten more are links and "Not tested"


def test_quality_falls_until_the_film_is_small_enough(
    looker: Looker, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = len(made(looker).data)
    monkeypatch.setattr(film_module, "MOST_BYTES", large - 1)
    assert len(made(looker).data) < large


def test_the_report_shows_it_and_writes_it_as_a_sealed_file(
    driven: Path, looker: Looker, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = made(looker)
    tags = read(write_report(driven).read_text()).tags
    (button,) = (attrs for tag, attrs in tags if tag == "button")
    assert button["data-film"] == film.source
    (still,) = (attrs for tag, attrs in tags if tag == "img")
    assert still["src"] == film.poster_source
    assert still["alt"] == film.description
    assert "NOT SAFE" in film.description
    assert (driven / FILM).read_bytes() == film.data
    assert FILM in read_seals(finished(driven).folder)
    monkeypatch.undo()  # its images are gone: so is the film, from page and folder
    assert "data-film" not in [
        key for _, attrs in read(write_report(driven).read_text()).tags for key in attrs
    ]
    assert not (driven / FILM).exists()
    assert FILM not in read_seals(finished(driven).folder)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_it_moves_only_for_those_who_want_it_to(
    browser: Browser, driven: Path, looker: Looker, tmp_path: Path, motion: Any
) -> None:
    film = made(looker)
    page = tmp_path / "report.html"
    page.write_text(write_report(driven).read_text())
    opened = browser.new_page(reduced_motion=motion)
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.goto(page.as_uri())
    shown = opened.locator(".film img")
    sources = (film.poster_source, film.source)
    plays = motion != "reduce"
    assert shown.get_attribute("src") == sources[plays]
    opened.locator(".film button").press("Enter")
    assert shown.get_attribute("src") == sources[not plays]
    assert opened.locator(".film button").get_attribute("aria-pressed") == str(not plays).lower()
    assert complaints == []
    opened.close()
