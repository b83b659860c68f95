"""Imported by Python when a program starts that a SUT consists of: notes the files that the program opens.

The program's own `sitecustomize` is imported as if this one were not there.
"""

import os
import sys
from typing import Any

_here = os.path.dirname(os.path.abspath(__file__))
_hook: "dict[str, Any]" = {"__name__": "adverse_file_access", "__file__": _here}
with open(os.path.join(os.path.dirname(_here), "hook.py")) as _file:
    exec(compile(_file.read(), _file.name, "exec"), _hook)  # noqa: S102 - our own file, without our package
_hook["install"]()
sys.path[:] = [_path for _path in sys.path if os.path.abspath(_path) != _here]
_this = sys.modules.pop(__name__)
try:
    __import__("sitecustomize")
except ImportError:
    pass
finally:
    sys.modules.setdefault(__name__, _this)
