"""What is kept of an answer, by task: detections, a confusion count of pixels, or the best classes.

Label maps are large, so a segmenter's answer is counted against the true labels at once; the counts of all
frames are all that its scores need.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import psutil
from numpy.typing import NDArray

from adverse.depth.boxes import box_depths_m
from adverse.errors import BadAnswerError, CrashError, InfrastructureError, StudyError, suggestion
from adverse.file_access import FileAccess
from adverse.study.attempts import Attempt, AttemptLog
from adverse.study.frame_versions import FrameVersion
from adverse.study.job import StudyJob, SutFault
from adverse.study.spec import OTHERS
from adverse.study.stages import Stage
from adverse.suts.ask import task_of
from adverse.types import Answer, ClassScores, Detections, LabelMap, Recorded, System

MOST_NAMED = 5
"""Classes that one error names."""
BEST = 5
"""Classes of a classifier that are kept: as many as top-5 accuracy needs."""
LOGGED_FAULTS = 20
"""Faults of a SUT in one unit whose traceback or stderr is kept."""
OTHER = ""
"""Stands for a class that the data set does not have, and for no answer at all."""
IDS = 256
"""Values that a label map of the data set can hold."""


class LoadedSut:
    """A SUT that is loaded. `isolated` ones watch over time and memory themselves."""

    def __init__(
        self,
        index: int,
        sut: System | Recorded,
        job: StudyJob,
        *,
        isolated: bool,
        access: FileAccess,
        attempts: AttemptLog | None = None,
    ) -> None:
        self.index = index
        self.access = access
        self.task = job.suts[index]
        self.sut: Any = sut
        self.isolated = isolated
        self.looks = not hasattr(sut, "recall")
        self.attempts = AttemptLog() if attempts is None else attempts
        self.begin()
        self.job = job
        self._check_task()
        self.names = self._names()

    def begin(self) -> None:
        """Forget what happened in the unit before."""
        self.outage: InfrastructureError | None = None
        """Why the SUT cannot be reached at the moment; it is tried again with the next unit."""
        self.own_deaths: set[tuple[str | None, str | None]] = set()
        """Frame and setting of attempts that ended with the death of a process, and count as the SUT's."""
        self.faults: list[SutFault] = []
        self.crashed = False
        """Whether it took a process of its own down."""

    def note_fault(self, stage: Stage, images: int, attempt: Attempt) -> None:
        """Keep what a failed attempt left behind, for the log of the SUT."""
        self.crashed = self.crashed or (isinstance(attempt.error, CrashError) and not attempt.unsure)
        if len(self.faults) < LOGGED_FAULTS:
            where = f"frame {stage.frame!r}, {stage.setting}, {images} image{'s' if images > 1 else ''}"
            self.faults.append(SutFault(self.task.name, where, str(attempt.error), attempt.output or ""))

    def machine_is_short(self) -> bool:
        """Return whether it is the machine that has no memory left, not the SUT that may use no more."""
        limit_mb = self.task.memory_limit_mb
        if limit_mb is None:
            return True
        used = 0.0
        with contextlib.suppress(psutil.Error, AttributeError):
            used = psutil.Process(self.sut.pid).memory_info().rss if self.sut.pid else 0.0
        return bool((psutil.virtual_memory().available + used) / 2**20 < limit_mb)

    def kept(self, version: FrameVersion, answer: Answer | None) -> dict[str, Any]:
        """Return the fields of a record that hold an answer; None: the SUT failed."""
        if version.back is not None and answer is not None:
            answer = version.back.answer(answer)
        if self.job.task == "segmentation":
            return self._segmented(version, answer if isinstance(answer, LabelMap) else None)
        if self.job.task == "classification":
            return self._classified(answer if isinstance(answer, ClassScores) else None)
        return self._detected(version, answer if isinstance(answer, Detections) else Detections.none())

    def check(self, answers: Sequence[Answer]) -> None:
        """Raise where detections come without what the study needs of them: masks, or positions."""
        self._check_masks(answers)
        lacking = [one for one in answers if isinstance(one, Detections) and one.positions_m is None]
        if self.task.positions == "reported" and any(map(len, lacking)):
            raise BadAnswerError(
                "the system under test does not report where its detections are",
                where=self.task.name,
                got="an answer without positions_m",
                wanted="positions_m (N, 3) in every answer, as the study says: positions: reported",
                fix="Let the system report them, or take positions: out of its section of the study.",
            )

    def _detected(self, version: FrameVersion, answer: Detections) -> dict[str, Any]:
        answer = Detections(
            answer.boxes,
            answer.scores,
            answer.labels,
            positions_m=None if self.task.positions == "localized" else answer.positions_m,
            masks=answer.masks if self.job.masks else None,
        )
        rows = [row for row, label in enumerate(answer.labels.tolist()) if label in self.names]
        labels = tuple(self.names[int(answer.labels[row])] for row in rows)
        depths, truth_depths = self._depths(version, answer.take(rows), labels)
        pixels = version.mutated_by_m
        return {
            "truth_depth_quantiles": None if pixels is None else pixels.quantiles_m.tolist(),
            "truth_depth_pixels": None if pixels is None else pixels.pixels.tolist(),
            "detections": answer.take(rows),
            "labels": labels,
            "depths": depths,
            "truth_depths": truth_depths,
        }

    def _depths(
        self, version: FrameVersion, answer: Detections, labels: tuple[str, ...]
    ) -> tuple[NDArray[np.float32] | None, list[float] | None]:
        """Return the depths of the targets among the boxes and, on the un-mutated frame, of the true ones.

        What a SUT places itself needs no depth.
        """
        if version.depth_m is None:
            return None, None
        wanted = [row for row, label in enumerate(labels) if label in self.job.targets]
        depths = np.full(len(answer), np.nan, np.float32)
        if wanted and answer.positions_m is None:
            depths[wanted] = box_depths_m(version.depth_m(), answer.boxes[wanted], self.job.localizer)
        if version.setting.group != "baseline":
            return depths, None
        true = box_depths_m(version.depth_m(), version.frame.truth.boxes, self.job.localizer)
        return depths, true.tolist()

    def _segmented(self, version: FrameVersion, answer: LabelMap | None) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        if version.labels is not None:
            nothing = np.full(version.labels.shape, len(self.sut.classes), np.int64)
            predicted = nothing if answer is None else answer.labels
            columns = {"confusion": self._confusion(version.labels, predicted)}
        if self.job.keep_label_maps and answer is not None:
            columns["label_map"] = cv2.imencode(".png", answer.labels)[1].tobytes()
        return columns

    def _confusion(self, true: NDArray[Any], predicted: NDArray[Any]) -> list[dict[str, str | int]]:
        """Count pixels by true and predicted class; pixels whose true class has no name are left out."""
        classes = list(dict.fromkeys(self.job.pixel_classes.values()))
        columns = [*classes, OTHER]
        row = np.full(IDS, len(classes) * len(columns), np.int64)  # one bin more, for what is not judged
        for number, name in self.job.pixel_classes.items():
            row[number] = classes.index(name) * len(columns)
        column = np.full(len(self.sut.classes) + 1, len(classes), np.int64)
        for label, name in self.names.items():
            column[label] = classes.index(name)
        judged = row[true]
        place = np.where(judged < len(classes) * len(columns), judged + column[predicted], judged)
        counts = np.bincount(place.ravel(), minlength=len(classes) * len(columns) + 1)[:-1]
        return [
            {
                "true": classes[at // len(columns)],
                "predicted": columns[at % len(columns)],
                "pixels": int(counts[at]),
            }
            for at in np.flatnonzero(counts).tolist()
        ]

    def _classified(self, answer: ClassScores | None) -> dict[str, Any]:
        if answer is None:
            return {"ranked": [], "ranked_scores": []}
        best = answer.best(BEST)
        return {
            "ranked": [self.names.get(int(label), self.sut.classes[int(label)]) for label in best],
            "ranked_scores": answer.scores[best].tolist(),
        }

    def _check_task(self) -> None:
        does = "detection" if not self.looks else task_of(self.sut)
        if does != self.job.task:
            raise StudyError(
                f"SUT {self.task.name!r} does not do the task of the study",
                where=f"SUT {self.task.name!r}",
                got=str(does),
                wanted=self.job.task,
                fix=f"Set task: {does} in the study, or name another SUT.",
            )
        if self.job.masks and not getattr(self.sut, "gives_masks", True):
            raise StudyError(
                f"SUT {self.task.name!r} gives boxes without masks",
                where=f"SUT {self.task.name!r}",
                wanted="a mask for each detection: the task is instance-segmentation",
                fix="Set task: detection in the study, or a decoder with masks (yolo-seg, mask-rcnn).",
            )

    def _check_masks(self, answers: Sequence[Answer]) -> None:
        """Raise where detections come without the masks that the task needs."""
        for answer in answers if self.job.masks else ():
            if isinstance(answer, Detections) and len(answer) and answer.masks is None:
                raise BadAnswerError(
                    "detections have no masks",
                    where=self.task.name,
                    got=f"{len(answer)} boxes without masks",
                    wanted="a mask for each detection: the task is instance-segmentation",
                    fix="Answer with masks, or set task: detection in the study.",
                )

    def _names(self) -> dict[int, str]:
        """Return the data set's name for each label of the SUT that the data set knows."""
        classes, job, task = self.sut.classes, self.job, self.task
        unknown = [name for name in task.class_map if name not in classes and name != OTHERS]
        if unknown:
            raise StudyError(
                f"class_map or groups name a class that SUT {task.name!r} does not have",
                where=f"SUT {task.name!r}",
                got=", ".join(f"{name!r} as {task.class_map[name]!r}" for name in unknown[:MOST_NAMED])
                + (f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""),
                wanted="names of classes as the SUT has them",
                fix=f"{unknown[0]!r}: {suggestion(unknown[0], classes)}",
            )
        there = job.pixel_classes.values() if job.task == "segmentation" else job.categories
        others = task.class_map.get(OTHERS)
        named = {label: task.class_map.get(name, others or name) for label, name in enumerate(classes)}
        names = {label: name for label, name in named.items() if not there or name in there}
        wanted = job.targets if job.task == "detection" else tuple(there)
        if wanted and not set(names.values()) & set(wanted):
            raise StudyError(
                f"SUT {task.name!r} can never answer {' or '.join(wanted[:8])}",
                where=f"SUT {task.name!r}",
                got=f"classes {', '.join(classes[:8])}{' ...' if len(classes) > 8 else ''}",
                wanted=f"at least one of {', '.join(wanted[:8])}",
                fix="Say what they are called here, as in class_map: {pedestrian: person}.",
            )
        return names
