"""The suite of rooms: what holds for every transform with its tables and samples. `make check-room` runs it for one."""
