"""`python -m infra.hooks STEP`: the steps that azd's hooks run. Each step is safe to run again."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from infra.hooks import package
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs, read_outputs

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ((3, 11), (3, 12))


def provisioned() -> None:
    """Prepare the environment after `azd provision`: database, jobs, Spark role, no deployment by password."""
    from infra.hooks import database, lake, rights
    from infra.hooks.rest import Rest, deployer_token

    outputs, rest = read_outputs(os.environ), Rest(deployer_token)
    database.prepare(outputs.store_connection, rights.database_users(outputs, rest, os.environ))
    lake.upload_jobs(_container(outputs))
    rights.allow_submitting(outputs, rest)
    rights.refuse_passwords(outputs, rest)


def deployable() -> None:
    """Refuse a package that would not start, and a schema on which this code does not run, before `azd deploy`."""
    from infra.hooks import app_start, database

    outputs = read_outputs(os.environ)
    names = app_start.refuse_unstartable(ROOT, app_start.cloud_settings(ROOT, os.environ))
    print(f"the package starts with {len(names)} functions: {', '.join(names)}")
    database.refuse_other_schema(outputs.store_connection)
    print("this code runs on the schema of the database")


def deployed() -> None:
    """Prove the app after `azd deploy`: its routes, and an event from the hub to its row."""
    from infra.hooks.rest import Rest, deployer_token
    from infra.hooks.smoke.run import prove_deployment

    prove_deployment(os.environ, Rest(deployer_token), deployer_token, time)


STEPS: dict[str, Callable[[], None]] = {"provisioned": provisioned, "deployable": deployable, "deployed": deployed}


def main(arguments: list[str] | None = None, known: Mapping[str, Callable[[], None]] = STEPS) -> int:
    """Run a known step and return 0, or print its faults to standard error and return 1."""
    parser = argparse.ArgumentParser(prog="python -m infra.hooks", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, run in known.items():
        steps.add_parser(name, help=run.__doc__).set_defaults(run=run)
    packing = steps.add_parser("package", help="Write the package of a deployment, and list its files and its size.")
    packing.add_argument("--to", type=Path, default=Path("package.zip"), help="default: package.zip")
    given = parser.parse_args(arguments)
    try:
        if sys.version_info[:2] not in SUPPORTED:
            raise HookRefused(f"the hooks need Python 3.11 or 3.12, as the app does; this is {sys.version.split()[0]}")
        given.run() if given.step in known else _pack(given.to)
    except HookRefused as error:
        for fault in error.faults:
            print(f"{given.step}: {fault}", file=sys.stderr)
        return 1
    return 0


def _pack(archive: Path) -> None:
    print(package.table_of(package.build(ROOT, archive), archive))


def _container(outputs: Outputs) -> object:
    from azure.identity import DefaultAzureCredential
    from azure.storage.blob import BlobServiceClient

    service = BlobServiceClient(outputs.lake_blob_endpoint, DefaultAzureCredential())
    return service.get_container_client(outputs.lake_container)


if __name__ == "__main__":
    sys.exit(main())
