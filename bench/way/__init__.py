"""The processor's time that an event takes at each step, from the socket to the committed row.

A profiler that counts every call doubles the time of small functions, so nothing here counts calls. Four processes
drain the same local hub in turn, three times: the SDK alone, the SDK with our two shortcuts, the worker, and the app on
the local Functions host. Each counts its own processor's time, and a whole is the median. The recorded messages then go
through each stage alone, in batches of 500, and a stage is the median over the batches. The rest is the whole less the
stages.

These were tried and left out, because they gained little: a cache of the parsed times in the worker's decode (less than
1 % of the whole), one statement for 50 rows in place of `executemany` (8 to 12 % less of the driver's CPU, nothing by
the clock), one connection to SQLite for all threads that write (a sixth with one worker, nothing with two), and larger
callbacks of the SDK (nothing). `gc.freeze()` in place of a higher limit gives the collector six times as much to do.
"""
