"""What the page sends, checked: nothing else becomes a change."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request

Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Id = Annotated[int, Field(gt=-(2**53), lt=2**53)]
MOST_EDITS = 200
LONGEST_WORDS = 120
Model = TypeVar("Model", bound=BaseModel)


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SentAnnotation(_Sent):
    """An annotation as the page has it; where it is in the world is worked out here."""

    box: tuple[Finite, Finite, Finite, Finite]
    label: str
    ignore: bool = False
    box_by: Literal["data", "hand", "tracker"] = "hand"
    point: tuple[Finite, Finite] | None = None
    right_x: Finite | None = None
    depth_m: Annotated[float, Field(gt=0, le=1e4)] | None = None
    score: Finite | None = None
    fine: tuple[Finite, Annotated[float, Field(gt=0, le=1e4)]] | None = None
    point_by: Literal["data", "hand", "tracker"] = "hand"
    row: Count | None = None

    @model_validator(mode="after")
    def _one_depth(self) -> Self:
        if self.right_x is not None and self.depth_m is not None:
            raise ValueError("depth is from the partner or from the depth map, not both")
        return self


class SentEdit(_Sent):
    """One annotation as it shall be, and the version of it that the page has seen."""

    frame: Count
    id: Id
    version: Count
    after: SentAnnotation | None


class SentChange(_Sent):
    """A change; the answer holds all that changed after version `since`."""

    log: str
    since: Count
    words: Annotated[str, Field(max_length=LONGEST_WORDS)]
    edits: Annotated[list[SentEdit], Field(min_length=1, max_length=MOST_EDITS)]
    group: Annotated[str, Field(max_length=40)] = ""


class SentObject(_Sent):
    """A change of an object in all frames: deleted, or given another id or class."""

    log: str
    since: Count
    id: Id
    to: Literal["delete", "id", "label"]
    new_id: Id | None = None
    label: str | None = None


class SentUndo(_Sent):
    """Undo, or redo, of the change with this version."""

    log: str
    since: Count
    top: Count
    again: bool = False


class SentTrack(_Sent):
    """Carry an object on from a frame, forward or backward."""

    log: str
    since: Count
    frame: Count
    id: Id
    step: Literal[1, -1]
    group: Annotated[str, Field(max_length=40)] = ""


async def sent(request: Request, model: type[Model]) -> Model:
    """Return what was posted, or refuse what is not of this kind."""
    try:
        body: Any = json.loads(await request.body())
        return model.model_validate(body)
    except (ValueError, RecursionError, ValidationError) as error:
        raise HTTPException(400, "That is not a change that this page makes.") from error
