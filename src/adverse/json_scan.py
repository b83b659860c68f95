"""One pass over the bytes of a JSON file: whether it is what the standard allows, and where its arrays are.

Compiled, because it looks at every byte: it builds nothing, so it takes the memory of a list of offsets. What
is refused: everything that RFC 8259 does, a key twice in one object (compared as text, so that an escaped
letter is the letter), half a surrogate pair, numbers of thousands of digits, and objects nested too deeply.
"""
# One loop, as the bytes come; compiled functions are best kept whole.
# ruff: noqa: C901, FBT001, PLR0911, PLR0912, PLR0915, PLR1714, SIM109, SIM110

from __future__ import annotations

from typing import Any

import numba
import numpy as np

MAX_KEYS = 1024
"""Keys of the outermost object."""
FEW_KEYS = 24
"""Up to so many keys each is compared with those before; above, they are sorted when the object closes."""
BLOCK = 2048
"""Every so many elements of an array their place is noted."""

WELL, UNEXPECTED, ENDS, DUPLICATE, CONSTANT, DEEP, SURROGATE, CONTROL, ESCAPE, DIGITS, EXTRA, KEYS = range(12)
_VALUE, _VALUE_OR_END, _AFTER, _KEY, _KEY_OR_END = range(5)
_OBJECT, _ARRAY = 0, 1
_FNV_START, _FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)


@numba.njit(cache=True, nogil=True)
def _hashed(total: Any, byte: Any) -> Any:  # pragma: no cover - compiled
    return (total ^ np.uint64(byte)) * _FNV_PRIME


@numba.njit(cache=True, nogil=True)
def _hex4(data: Any, at: int) -> int:  # pragma: no cover - compiled
    """Return the number that four hexadecimal digits write, -1 where they are none."""
    if at + 4 > data.size:
        return -1
    value = 0
    for k in range(at, at + 4):
        c = data[k]
        if 48 <= c <= 57:
            value = value * 16 + c - 48
        elif 65 <= c <= 70:
            value = value * 16 + c - 55
        elif 97 <= c <= 102:
            value = value * 16 + c - 87
        else:
            return -1
    return value


@numba.njit(cache=True, nogil=True)
def _string(data: Any, at: int) -> Any:  # pragma: no cover - compiled
    """Return where a string ends that begins before `at`, the hash of its text, and what is wrong with it."""
    n = data.size
    total = _FNV_START
    i = at
    while i < n:
        c = data[i]
        if c == 34:
            return i + 1, total, WELL
        if c < 32:
            return i, total, CONTROL
        if c != 92:
            total = _hashed(total, c)
            i += 1
            continue
        if i + 1 >= n:
            return n, total, ENDS
        e = data[i + 1]
        if e != 117:
            if e == 34 or e == 92 or e == 47:
                plain = e
            elif e == 98:
                plain = np.uint8(8)
            elif e == 102:
                plain = np.uint8(12)
            elif e == 110:
                plain = np.uint8(10)
            elif e == 114:
                plain = np.uint8(13)
            elif e == 116:
                plain = np.uint8(9)
            else:
                return i, total, ESCAPE
            total = _hashed(total, plain)
            i += 2
            continue
        code = _hex4(data, i + 2)
        if code < 0:
            return i, total, ESCAPE
        width = 6
        if 0xD800 <= code <= 0xDFFF:
            low = -1
            if code < 0xDC00 and i + 12 <= n and data[i + 6] == 92 and data[i + 7] == 117:
                low = _hex4(data, i + 8)
            if low < 0xDC00 or low > 0xDFFF:
                return i, total, SURROGATE
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            width = 12
        if code < 0x80:
            total = _hashed(total, code)
        elif code < 0x800:
            total = _hashed(total, 0xC0 | code >> 6)
            total = _hashed(total, 0x80 | code & 63)
        elif code < 0x10000:
            total = _hashed(total, 0xE0 | code >> 12)
            total = _hashed(total, 0x80 | code >> 6 & 63)
            total = _hashed(total, 0x80 | code & 63)
        else:
            total = _hashed(total, 0xF0 | code >> 18)
            total = _hashed(total, 0x80 | code >> 12 & 63)
            total = _hashed(total, 0x80 | code >> 6 & 63)
            total = _hashed(total, 0x80 | code & 63)
        i += width
    return n, total, ENDS


@numba.njit(cache=True, nogil=True)
def _number(data: Any, at: int, max_digits: int) -> Any:  # pragma: no cover - compiled
    """Return where a number ends, and what is wrong with it."""
    n = data.size
    i = at + 1 if data[at] == 45 else at
    if i >= n:
        return n, ENDS
    first = i
    if data[i] == 48:
        i += 1
    else:
        while i < n and 48 <= data[i] <= 57:
            i += 1
        if i == first:
            return i, UNEXPECTED
        if i - first > max_digits:
            return at, DIGITS
    if i < n and data[i] == 46:
        i += 1
        start = i
        while i < n and 48 <= data[i] <= 57:
            i += 1
        if i == start:
            return i, ENDS if i >= n else UNEXPECTED
    if i < n and (data[i] == 101 or data[i] == 69):
        i += 1
        if i < n and (data[i] == 43 or data[i] == 45):
            i += 1
        start = i
        while i < n and 48 <= data[i] <= 57:
            i += 1
        if i == start:
            return i, ENDS if i >= n else UNEXPECTED
    return i, WELL


@numba.njit(cache=True, nogil=True)
def _word(data: Any, at: int, word: Any) -> bool:  # pragma: no cover - compiled
    if at + word.size > data.size:
        return False
    for k in range(word.size):
        if data[at + k] != word[k]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _repeated(hashes: Any, places: Any, first: int, stop: int) -> int:  # pragma: no cover - compiled
    """Return the place of a key that is among those before it, or -1."""
    order = np.argsort(hashes[first:stop], kind="mergesort")
    for k in range(1, order.size):
        if hashes[first + order[k]] == hashes[first + order[k - 1]]:
            return int(places[first + order[k]])
    return -1


@numba.njit(cache=True, nogil=True)
def scan(
    data: Any, words: Any, nan: bool, keys: Any, marks: Any, max_depth: int, max_digits: int
) -> Any:  # pragma: no cover - compiled
    """Return (what is wrong, where, where the object begins that it is in, number of keys, of marks).

    `words` are true, false, null, NaN and Infinity as bytes. `keys` (MAX_KEYS, 5) gets, for each key of the
    outermost object, where the key and its value begin and end, and the number of elements of an array (-1
    otherwise); a file that is an array has one row without a key. `marks` (M, 3) gets the row of `keys`, the
    number of the element and where it begins, for every BLOCK-th element of such an array.
    """
    n = data.size
    kinds = np.zeros(max_depth + 2, np.int64)
    starts = np.zeros(max_depth + 2, np.int64)
    bases = np.zeros(max_depth + 2, np.int64)
    hashes = np.zeros(1024, np.uint64)
    places = np.zeros(1024, np.int64)
    held, depth, state = 0, 0, _VALUE
    row, found, marked = -1, 0, 0
    listed = -1  # the depth of the array whose elements are counted
    i = 0
    while True:
        while i < n and (data[i] == 32 or data[i] == 10 or data[i] == 13 or data[i] == 9):
            i += 1
        if i >= n:
            if depth == 0 and state == _AFTER:
                return WELL, n, 0, found, marked
            return ENDS, n, 0, found, marked
        c = data[i]
        done = False  # whether a value has ended
        if state == _AFTER:
            if depth == 0:
                return EXTRA, i, 0, found, marked
            if c == 44:
                state = _KEY if kinds[depth] == _OBJECT else _VALUE
                i += 1
                continue
            if c != (125 if kinds[depth] == _OBJECT else 93):
                return UNEXPECTED, i, starts[depth], found, marked
        if (c == 125 and (state == _AFTER or state == _KEY_OR_END)) or (
            c == 93 and (state == _AFTER or state == _VALUE_OR_END)
        ):
            if kinds[depth] == _OBJECT:
                if held - bases[depth] > FEW_KEYS:
                    twice = _repeated(hashes, places, bases[depth], held)
                    if twice >= 0:
                        return DUPLICATE, twice, starts[depth], found, marked
                held = bases[depth]
            if depth == listed:
                listed = -1
            depth -= 1
            i += 1
            done = True
        elif state == _KEY or state == _KEY_OR_END:
            if c != 34:
                return UNEXPECTED, i, starts[depth], found, marked
            stop, hashed, wrong = _string(data, i + 1)
            if wrong != WELL:
                return wrong, stop, starts[depth], found, marked
            if held == hashes.size:
                more_hashes, more_places = np.zeros(2 * held, np.uint64), np.zeros(2 * held, np.int64)
                more_hashes[:held], more_places[:held] = hashes, places
                hashes, places = more_hashes, more_places
            if held - bases[depth] < FEW_KEYS:
                for k in range(bases[depth], held):
                    if hashes[k] == hashed:
                        return DUPLICATE, i, starts[depth], found, marked
            hashes[held], places[held] = hashed, i
            held += 1
            if depth == 1:
                if found == keys.shape[0]:
                    return KEYS, i, 0, found, marked
                row = found
                keys[row, 0], keys[row, 1], keys[row, 4] = i, stop, -1
                found += 1
            i = stop
            while i < n and (data[i] == 32 or data[i] == 10 or data[i] == 13 or data[i] == 9):
                i += 1
            if i >= n:
                return ENDS, n, 0, found, marked
            if data[i] != 58:
                return UNEXPECTED, i, starts[depth], found, marked
            i += 1
            state = _VALUE
            continue
        else:
            if depth == listed and depth > 0:
                if keys[row, 4] % BLOCK == 0:
                    marks[marked, 0], marks[marked, 1], marks[marked, 2] = row, keys[row, 4], i
                    marked += 1
                keys[row, 4] += 1
            elif depth == 1 and kinds[1] == _OBJECT:
                keys[row, 2] = i
            if c == 123 or c == 91:
                if depth == max_depth:
                    return DEEP, i, 0, found, marked
                depth += 1
                kinds[depth] = _OBJECT if c == 123 else _ARRAY
                starts[depth], bases[depth] = i, held
                if c == 91 and (depth == 1 or (depth == 2 and kinds[1] == _OBJECT)):
                    if depth == 1:
                        row, found = 0, 1
                        keys[0, 0], keys[0, 1], keys[0, 2] = -1, -1, i
                    keys[row, 4] = 0
                    listed = depth
                state = _KEY_OR_END if c == 123 else _VALUE_OR_END
                i += 1
                continue
            if c == 34:
                stop, _, wrong = _string(data, i + 1)
            elif c == 45 and _word(data, i + 1, words[4]):
                stop, wrong = (i + 9, WELL) if nan else (i, CONSTANT)
            elif c == 45 or 48 <= c <= 57:
                stop, wrong = _number(data, i, max_digits)
            elif _word(data, i, words[0]) or _word(data, i, words[2]):
                stop, wrong = i + 4, WELL
            elif _word(data, i, words[1]):
                stop, wrong = i + 5, WELL
            elif _word(data, i, words[3]):
                stop, wrong = (i + 3, WELL) if nan else (i, CONSTANT)
            elif _word(data, i, words[4]):
                stop, wrong = (i + 8, WELL) if nan else (i, CONSTANT)
            else:
                stop, wrong = i, UNEXPECTED
            if wrong != WELL:
                return wrong, stop, starts[depth], found, marked
            i = stop
            done = True
        if done:
            state = _AFTER
            if (depth == 1 and kinds[1] == _OBJECT) or (depth == 0 and kinds[1] == _ARRAY and found > 0):
                keys[row, 3] = i
