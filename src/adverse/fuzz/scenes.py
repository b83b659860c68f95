"""The base scenes of a campaign in memory: each is decoded once for as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from adverse.content import ChangedError, PlannedFiles
from adverse.errors import DataError, one_line
from adverse.fuzz.job import FuzzJob
from adverse.semantic import Scene, scene_of
from adverse.study.stages import Avoid, Stage

ROOM_BYTES = 256 * 2**20


class Scenes:
    """The scenes of a job's frames by their place, the least recently used ones forgotten first."""

    def __init__(self, job: FuzzJob, tell: Callable[[Stage], None], room_bytes: int = ROOM_BYTES) -> None:
        self.job = job
        self.tell = tell
        self.room_bytes = room_bytes
        self._kept: OrderedDict[int, Scene | str] = OrderedDict()
        self._bytes = 0

    def get(self, place: int, avoid: Avoid) -> Scene | str:
        """Return a scene, or why there is none; ChangedError where its files are not as planned."""
        frame = self.job.frames[place]
        if (frame.id, None) in avoid.steps:
            return "the process that prepared this frame died"
        if place in self._kept:
            self._kept.move_to_end(place)
            return self._kept[place]
        self.tell(Stage("decoding", frame.id))
        scene = self._read(place)
        self._kept[place] = scene
        self._bytes += _size(scene)
        while self._bytes > self.room_bytes and len(self._kept) > 1:
            self._bytes -= _size(self._kept.popitem(last=False)[1])
        return scene

    def _read(self, place: int) -> Scene | str:
        files = PlannedFiles(self.job.inputs)
        frame = files.of(self.job.frames[place])
        try:
            if frame.fault is not None:
                raise DataError(frame.fault)
            return scene_of(frame, self.job.meaning)
        except Exception as error:
            if files.changed:
                raise ChangedError(files.changed) from error
            return one_line(error)  # whatever a decoder throws costs a frame, never the run


def _size(scene: Scene | str) -> int:
    if isinstance(scene, str):
        return 0
    depth = 0 if scene.depth_m is None else scene.depth_m.nbytes
    return int(scene.image.nbytes + scene.labels.nbytes + scene.instances.nbytes + depth)
