"""Edge-aware refinement of a noisy map with confidence: a bilateral solver after Barron and Poole (2016).

Pixels of similar place and colour share a vertex of a bilateral grid; each takes one value. The values
minimise the differences between neighbouring vertices and, by confidence, to the map: a sparse linear
system of some ten thousand unknowns, solved by conjugate gradients. The grid is the simplified one: pixels
belong to their nearest vertex, and blurring is the same [1 2 1] along each of the five axes, made
bistochastic first.
"""

from __future__ import annotations

import cv2
import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.types import Image

CELL_PX, LUMA_LEVELS, CHROMA_LEVELS = 8.0, 8.0, 8.0
"""Size of a vertex in the image, in brightness and in colour."""
BISTOCHASTIC_TURNS = 10
STEPS = 25
"""Of conjugate gradients."""
_LEAST = 1e-6

Floats = NDArray[np.float32]


def bilateral_solver(values: Floats, confidence: Floats, guide: Image, *, smoothness: float = 4.0) -> Floats:
    """Return values (H,W) refined by confidence (H,W) in 0..1 and a guide image (H,W,3).

    >>> guide = np.zeros((16, 16, 3), np.uint8)
    >>> guide[:, 8:] = 200
    >>> truth = np.where(guide[..., 0] > 0, 5.0, 1.0).astype(np.float32)
    >>> noisy, sure = truth.copy(), np.ones((16, 16), np.float32)
    >>> noisy[4, 4], sure[4, 4] = 99, 0
    >>> bool(np.abs(bilateral_solver(noisy, sure, guide) - truth).max() < 0.1)
    True
    """
    vertex, coordinates = _vertices(guide)
    blur = _blur(coordinates)
    mass = np.bincount(vertex, minlength=len(coordinates)).astype(np.float64)
    scale = np.ones(len(mass))
    for _ in range(BISTOCHASTIC_TURNS):
        scale = np.sqrt(scale * mass / (blur @ scale))
    mass = scale * (blur @ scale)
    balance = scipy.sparse.diags_array(scale)
    sure = np.bincount(vertex, confidence.ravel(), len(mass))
    data = np.bincount(vertex, (confidence * values).ravel(), len(mass))
    system = smoothness * (scipy.sparse.diags_array(mass) - balance @ blur @ balance)
    system = (system + scipy.sparse.diags_array(sure + _LEAST)).tocsr()
    start = data / np.maximum(sure, _LEAST)
    start[sure <= _LEAST] = data.sum() / max(float(sure.sum()), _LEAST)
    solved = _conjugate_gradients(system, data + _LEAST * start, start)
    refined: Floats = solved[vertex].reshape(values.shape).astype(np.float32)
    return refined


def _vertices(guide: Image) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the vertex of each pixel (H*W,) and the coordinates (V,5) of each vertex."""
    colour = guide if guide.ndim == 3 else cv2.cvtColor(guide, cv2.COLOR_GRAY2RGB)
    luma, red, blue = cv2.split(cv2.cvtColor(colour, cv2.COLOR_RGB2YCrCb))
    rows, columns = luma.shape
    parts = np.empty((5, rows, columns), np.int64)
    parts[0] = (np.arange(rows) / CELL_PX + 0.5).astype(np.int64)[:, None]
    parts[1] = (np.arange(columns) / CELL_PX + 0.5).astype(np.int64)
    parts[2], parts[3], parts[4] = (
        (channel / levels + 0.5).astype(np.int64)
        for channel, levels in ((luma, LUMA_LEVELS), (red, CHROMA_LEVELS), (blue, CHROMA_LEVELS))
    )
    sizes = parts.reshape(5, -1).max(axis=1) + 2  # one more, so that a step never reaches the next row
    code = parts[0].ravel()
    for axis in range(1, 5):
        code = code * sizes[axis] + parts[axis].ravel()
    codes, vertex = np.unique(code, return_inverse=True)
    coordinates = np.empty((len(codes), 5), np.int64)
    for axis in range(4, 0, -1):
        coordinates[:, axis] = codes % sizes[axis]
        codes = codes // sizes[axis]
    coordinates[:, 0] = codes
    return vertex, coordinates


def _blur(coordinates: NDArray[np.int64]) -> scipy.sparse.csr_array:
    """Return the (V,V) sum of [1 2 1] along each axis, over the vertices that exist."""
    count = len(coordinates)
    sizes = coordinates.max(axis=0) + 2
    strides = np.cumprod([1, *sizes[:0:-1]])[::-1]
    codes = coordinates @ strides
    order = np.argsort(codes)
    ordered = codes[order]
    near, far = [], []
    for stride in strides:
        at = np.minimum(np.searchsorted(ordered, ordered + stride), count - 1)
        there = ordered[at] == ordered + stride
        near.append(order[there])
        far.append(order[at[there]])
    one, other = np.concatenate(near), np.concatenate(far)
    half = scipy.sparse.coo_array((np.ones(len(one)), (one, other)), shape=(count, count)).tocsr()
    total = half + half.T + scipy.sparse.diags_array(np.full(count, 2.0 * len(strides)))
    return total.tocsr()


def _conjugate_gradients(
    system: scipy.sparse.csr_array, wanted: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    inverse = 1 / system.diagonal()
    solution = start.copy()
    residual = wanted - system @ solution
    scaled = inverse * residual
    direction = scaled.copy()
    size = float(residual @ scaled)
    for _ in range(STEPS):
        if size <= 0:
            break
        pushed = system @ direction
        step = size / float(direction @ pushed)
        solution += step * direction
        residual -= step * pushed
        scaled = inverse * residual
        new = float(residual @ scaled)
        direction = scaled + new / size * direction
        size = new
    return solution
