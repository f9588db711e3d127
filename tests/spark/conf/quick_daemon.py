"""The daemon of PySpark without the archives that Spark puts on the path: Python reads each one again for each task.

The wheel has the same modules in files. What each task needs is imported here once, before a worker is forked.
"""

import gc
import sys

sys.path[:] = [place for place in sys.path if not place.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

import pyarrow  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

if __name__ == "__main__":
    gc.freeze()
    manager()
