"""`python -m tools.capacity`: the sizes that a load needs, the part that breaks first, its telemetry and its costs."""

import argparse
import sys

from tools.capacity.arguments import positive, whole
from tools.capacity.costs import costs_report, dev_report
from tools.capacity.limits import GB, INSTANCE_CORES
from tools.capacity.sizing import Costs, Load, Sizing, size, stored_bytes_per_day
from tools.capacity.telemetry import telemetry_report

PARTITIONS = 16  # `partitionCount` of infra/main.bicep


def main(arguments: list[str] | None = None) -> int:
    """Print the sizing of one load, its telemetry and its costs."""
    given = _parser().parse_args(arguments)
    load = Load(given.events, given.bytes, given.log_bytes, given.row_bytes, given.headroom)
    sizing = size(load, Costs(cpu_seconds_per_event=given.cpu * 1e-6), given.memory)
    partitions = given.partitions or max(PARTITIONS, sizing.partitions)
    print(report(sizing), telemetry_report(sizing, partitions), costs_report(sizing, partitions), sep="\n\n")
    print(f"\n{dev_report(PARTITIONS)}")
    return 0


def report(sizing: Sizing) -> str:
    """Return the sizing as text for a person."""
    load, first = sizing.load, sizing.breaks_first
    lines = [f"{load.events_per_second:,.0f} events/s of {load.event_bytes} B, bought {load.headroom:g} times as large"]
    if sizing.shards > 1:
        lines.append(f"{sizing.shards} shards, each with its own hub, app and database; for each:")
    for part in sizing.parts:
        lines += [f"  {part.name + ':':<12} {part.size}", f"  {'':<12} {part.arithmetic}"]
    lines.append(f"  {'storage:':<12} {stored_bytes_per_day(load) / GB:,.1f} GB of rows a day, all together")
    lines.append(f"breaks first: {first.name}, at {first.bears:,.0f} events/s; then: {first.then}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    own, costs = Load(0), Costs()
    parser = argparse.ArgumentParser(prog="python -m tools.capacity", description=__doc__)
    parser.add_argument("events", type=positive, help="events a second at the busiest hour")
    parser.add_argument("--bytes", type=whole, default=own.event_bytes, help="size of an event (default %(default)s)")
    parser.add_argument(
        "--log-bytes",
        type=whole,
        default=own.log_bytes_per_event,
        help="bytes that an event adds to the database's log (default %(default)s)",
    )
    parser.add_argument(
        "--row-bytes", type=whole, default=own.row_bytes_per_event, help="bytes of its rows (default %(default)s)"
    )
    parser.add_argument("--headroom", type=positive, default=own.headroom, help="factor (default %(default)s)")
    parser.add_argument(
        "--cpu",
        type=positive,
        default=costs.cpu_seconds_per_event * 1e6,
        help="µs of one core per event, your transform included (default %(default)s)",
    )
    parser.add_argument(
        "--partitions", type=whole, help=f"of the hub (default {PARTITIONS}, or as many as the load needs)"
    )
    parser.add_argument(
        "--memory", type=int, choices=sorted(INSTANCE_CORES), default=2048, help="MB of an instance (default 2048)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
