"""The suite of rooms: what must hold for every transform with its tables and samples. `make check-room` runs it for one."""
