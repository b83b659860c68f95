"""A folder on the search path of Python programs that a SUT starts; see `sitecustomize.py`."""
