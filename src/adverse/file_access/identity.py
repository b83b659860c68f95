"""What counts as an input, and which file stands for one that was opened: itself, or a distribution.

Everything counts that is not named here, with the reason. Of an installed distribution the list of its files
with their hashes stands for its code, so that a model that imports a framework rests on one file and not on
thousands; the data in its folder, maybe fetched later, stand for themselves.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import adverse
from adverse.content import VARIABLE

OURS = f"{Path(adverse.__file__).parent}/"
NO_INPUT = re.compile(
    r"""/proc/ | /sys/ | /dev/(?!shm/)                      # the kernel and devices: no content that stays
    | (/usr)?/lib(32|64)?/(.*/)?[^/]+\.so(\.[\d.]+)?$       # libraries of the machine, and what says where
    | /etc/ld\.so\.                                         #   they are: another one is flagged, not repeated
    | /usr/(lib|share)/(locale|zoneinfo)/ | /usr/lib/[^/]+/gconv/ | /etc/(localtime|timezone|locale)
    | /etc/(passwd|group|nsswitch\.conf|host|hosts|host\.conf|gai\.conf|resolv\.conf|services|protocols)$
    | /etc/(ssl|pki|ca-certificates)/ | /run/(systemd|nscd|resolvconf)/      # names of users and machines
    | (/etc|/usr/lib)/(os|lsb)-release$ | /etc/mime\.types$
    | .*/\.(aws|azure|boto|config/gcloud)(/|$)              # credentials: never even hashed
    | .*/adverse/remote/[0-9a-f]{2}/[0-9a-f]{62}/          # copies of files that are inputs by their URL
    | .*/\.onnxruntime/(deviceid|onnxruntime\.db[^/]*)$    # its usage records: every process writes to them
    """,
    re.VERBOSE,
)
"""Files that say on which machine something runs, not what it does."""
NO_INPUT_VARIABLE = re.compile(
    r"""ADVERSE_\w+ | PATH | PYTHON(PATH|SAFEPATH|UNBUFFERED|FAULTHANDLER)     # what is found by them is seen
    | VIRTUAL_ENV | CONDA_\w+ | LD_LIBRARY_PATH | DYLD_\w+
    | (OMP|OPENBLAS|MKL|NUMEXPR|NUMBA)_NUM_THREADS | OPENCV_FOR_THREADS_NUM | VECLIB_MAXIMUM_THREADS   # ours
    | HOME | USER | LOGNAME | HOSTNAME | SHELL | SHLVL | PWD | OLDPWD | _ | MAIL | TMPDIR | TMP | TEMP
    | XDG_\w+ | (COLOR)?TERM | NO_COLOR | FORCE_COLOR | CLICOLOR | COLUMNS | LINES | LS_COLORS | LESS
    | EDITOR | VISUAL | PAGER | HISTFILE | HISTSIZE | DISPLAY | WAYLAND_DISPLAY | XAUTHORITY | WINDOWID
    | (AWS|AZURE|GOOGLE|GCLOUD|CLOUDSDK|FSSPEC)_\w+ | BOTO\w*             # who reads the data, not which
    | SSH_\w+ | DBUS_\w+ | GPG_\w+ | TMUX\w* | STY | VSCODE_\w+ | JOURNAL_STREAM | INVOCATION_ID
    | CI | GITHUB_\w+ | GITLAB_\w+ | SLURM_\w+ | PYTEST_\w+ | COV_\w+ | COVERAGE_\w+
    """,
    re.VERBOSE,
)
"""Variables that say who works where, in which terminal or job; they differ from one session to the next."""
STANDARD_LIBRARY = re.compile(r"(.*/lib(?:64)?/python3)(?:(\.\d+/)|\d+\.zip)")
INSTALLED = re.compile(r"(.*?/(?:site|dist)-packages)/([^/]+)")
METADATA = (".dist-info", ".egg-info", ".pth")
"""Endings of what is read to find distributions, not to run them."""
LIBRARIES = (
    "ai-edge-litert",
    "duckdb",
    "llvmlite",
    "numba",
    "numpy",
    "onnxruntime",
    "opencv-python-headless",
    "pillow",
    "psutil",
    "pyarrow",
    "pydantic",
    "pydantic-core",
    "pyrtools",
    "pywavelets",
    "scipy",
    "simplejpeg",
)
"""Distributions that we use ourselves: whose code loads them is chance, so they belong to the environment."""


def identity_of(path: str) -> tuple[str, ...]:
    """Return the files whose content says what was opened; none for what is ours, Python's or the machine's.

    >>> identity_of("/home/me/__pycache__/model.cpython-311.pyc")
    ('/home/me/__pycache__/model.cpython-311.pyc',)
    >>> identity_of("/proc/cpuinfo"), identity_of("/dev/shm/weights")
    ((), ('/dev/shm/weights',))
    >>> identity_of("/home/me/.cache/Microsoft/DeveloperTools/.onnxruntime/onnxruntime.db-shm")
    ()
    >>> identity_of("$HOME"), identity_of("$AWS_SECRET_ACCESS_KEY"), identity_of("/home/me/.aws/credentials")
    ((), (), ())
    >>> identity_of("$SCALE")
    ('$SCALE',)
    """
    if path.startswith(VARIABLE):
        return () if NO_INPUT_VARIABLE.fullmatch(path[1:]) else (path,)
    installed = INSTALLED.match(path)
    if path.startswith(OURS) or (installed is not None and installed[2].endswith(METADATA)):
        return ()
    if installed is not None and installed[2] in _records(installed[1]):
        records = _records(installed[1])[installed[2]]
        return records if not records or is_code(Path(path)) else (path,)
    if installed is None and (NO_INPUT.match(path) or _is_standard_library(path)):
        return ()
    made_from_source = "/__pycache__/" in path and not path.endswith(".pyc")  # which was opened as well
    return () if made_from_source else (path,)


@functools.cache
def _standard_library(folder: str) -> bool:
    return Path(folder, "os.py").is_file()


def _is_standard_library(path: str) -> bool:
    """Return whether a path is below the modules of a Python, not in a folder that is only called so."""
    found = STANDARD_LIBRARY.match(path)
    return found is not None and (found[2] is None or _standard_library(found[1] + found[2]))


def is_code(path: Path) -> bool:
    """Return whether a file stands for something that a process imports, which it does only once."""
    return path.suffix in (".py", ".pyc", ".so") or ".so." in path.name or path.name == "RECORD"


@functools.cache
def _records(site: str) -> dict[str, tuple[str, ...]]:
    """Return the lists of the distributions below a folder by the first part of the files' names."""
    found: dict[str, set[str]] = {}
    for record in Path(site).glob("*.dist-info/RECORD"):
        ours = record.parent.name.partition("-")[0].lower().replace("_", "-") in LIBRARIES
        try:
            lines = record.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for top in {line.partition(",")[0].partition("/")[0].strip('"') for line in lines} - {"..", ""}:
            found.setdefault(top, set()).update(() if ours else {str(record)})
    return {top: tuple(sorted(records)) for top, records in found.items() if top != "__pycache__"}
