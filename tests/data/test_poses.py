from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from adverse.data.rig import read_poses, rotation
from adverse.errors import DataError

HEADER = "frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz"
FORWARD = "0.5,-0.5,0.5,-0.5"


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "poses.csv"
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


def test_poses_carry_camera_points_into_the_world(tmp_path: Path) -> None:
    poses = read_poses(written(tmp_path, f"000, 0.5, 10,2,1.5,{FORWARD}", "", f"001,0.6,11,2,1.5,{FORWARD}"))
    assert list(poses) == ["000", "001"]
    assert poses["000"].time_s == 0.5
    ahead_left_up = poses["000"].world_from_camera @ [-1.0, -2.0, 5.0, 1.0]
    np.testing.assert_allclose(ahead_left_up, [15, 3, 3.5, 1])
    assert not poses["000"].world_from_camera.flags.writeable


def test_columns_may_be_in_any_order_and_names_may_be_any(tmp_path: Path) -> None:
    header = "time_s,frame,qx,qy,qz,qw,x_m,y_m,z_m"
    poses = read_poses(written(tmp_path, '1,"bild, écran",0,0,0,1,1,2,3', header=header))
    np.testing.assert_array_equal(poses["bild, écran"].world_from_camera[:3, 3], [1, 2, 3])


@given(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_rotation_is_that_of_scipy(quaternion: tuple[float, ...]) -> None:
    unit = np.array(quaternion) / np.linalg.norm(quaternion)
    witness = Rotation.from_quat(unit, scalar_first=True).as_matrix()
    np.testing.assert_allclose(rotation(unit), witness, atol=1e-12)


@pytest.mark.fault(29)
@pytest.mark.parametrize(
    ("lines", "line", "word"),
    [
        (["a,0,0,0,0,1,0,0,0", "b,0,0,0,0,1,0,0,0"], 3, "time_s 0 after 0"),
        (["a,2,0,0,0,1,0,0,0", "b,1,0,0,0,1,0,0,0"], 3, "later"),
        (["a,0,0,0,0,1,0,0,0", "a,1,0,0,0,1,0,0,0"], 3, "frame 'a' again"),
        (["a,nan,0,0,0,1,0,0,0"], 2, "time_s = nan"),
        (["a,0,0,inf,0,1,0,0,0"], 2, "y_m = inf"),
        (["a,0,zero,0,0,1,0,0,0"], 2, "x_m = 'zero'"),
        (["a,0,0,0,0,2,0,0,0"], 2, "quaternion of length 2"),
        (["a,0,0,0,0,1,0,0"], 2, "8 values"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, lines: list[str], line: int, word: str) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(DataError) as caught:
        read_poses(path)
    assert caught.value.where == f"{path}, line {line}"
    assert word in str(caught.value)
    assert caught.value.fix


def test_wrong_columns_and_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1; got: columns frame,t; wanted: the columns frame,time_s"):
        read_poses(written(tmp_path, header="frame,t"))
    (tmp_path / "poses.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_poses(tmp_path / "poses.csv")
