"""`python -m infra.hooks STEP`: the steps that azd's hooks run. Each step is safe to run again."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from infra.hooks import package
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs, read_outputs

if TYPE_CHECKING:
    from infra.hooks.database import ServerDatabase
    from infra.hooks.deployer.sign_in import Identity

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
TRACEBACK = "HOOKS_TRACEBACK"  # set it to see the traceback of an error that no hook foresees


def preprovision() -> None:
    """Check choices and transform, and set what Azure must know of deployer and hub, before `azd provision`."""
    from infra.hooks import room
    from infra.hooks.deployer.address import address_of, find_address
    from infra.hooks.deployer.administrator import choose_administrator
    from infra.hooks.deployer.choices import refuse_unreadable
    from infra.hooks.deployer.environment import set_values
    from infra.hooks.deployer.existing import SERVER, hub_values, is_given, refuse_halves
    from infra.hooks.deployer.provider import register_provider
    from infra.hooks.deployer.sign_in import open_identity
    from infra.hooks.rest import Rest

    refuse_unreadable(ROOT / "infra", os.environ)
    refuse_halves(os.environ)
    room.transform_in(os.environ)  # a fault of the app costs nothing yet
    identity = open_identity(os.environ)
    account = identity.account()
    address_of(os.environ, find_address)  # the hooks after it need one
    administrator = {} if is_given(SERVER, os.environ) else choose_administrator(os.environ, account)
    rest = Rest(identity.token, time)
    hub = hub_values(os.environ, rest)
    register_provider(os.environ, rest, time)
    set_values({**administrator, **hub}, os.environ)


def provisioned() -> None:
    """Prepare the environment after `azd provision`: database, jobs, Spark role, local.settings.json."""
    from infra.hooks import lake, rights
    from infra.hooks.deployer.address import address_of, find_address
    from infra.hooks.deployer.local_settings import write_local_settings
    from infra.hooks.deployer.sign_in import open_identity
    from infra.hooks.door import open_to
    from infra.hooks.rest import Rest

    outputs, identity = read_outputs(os.environ), open_identity(os.environ)
    rest, database = Rest(identity.token, time), _database(outputs, identity)
    with open_to(address_of(os.environ, find_address), outputs, rest):
        database.migrate()
        database.admit(rights.database_users(outputs, rest, os.environ))
        rights.allow_submitting(outputs, rest)
    lake.upload_jobs(outputs.spark_engine_choice, lambda: _container(outputs, identity), time)
    write_local_settings(ROOT, outputs, os.environ)


def deployable() -> None:
    """Refuse a package that would not start, and a schema on which this code does not run, before `azd deploy`."""
    from infra.hooks import app_start
    from infra.hooks.deployer.address import address_of, find_address
    from infra.hooks.deployer.sign_in import open_identity
    from infra.hooks.door import open_to
    from infra.hooks.rest import Rest

    outputs, identity = read_outputs(os.environ), open_identity(os.environ)
    names = app_start.refuse_unstartable(ROOT, app_start.cloud_settings(ROOT, outputs.settings, os.environ))
    print(f"the package starts with {len(names)} functions: {', '.join(names)}")
    with open_to(address_of(os.environ, find_address), outputs, Rest(identity.token, time)):
        _database(outputs, identity).refuse_other_schema()
    print("this code runs on the schema of the database")


def deployed() -> None:
    """Prove the app after `azd deploy`: its routes, and an event from the hub to its row."""
    from infra.hooks.deployer.environment import set_values
    from infra.hooks.deployer.sign_in import open_identity
    from infra.hooks.rest import Rest
    from infra.hooks.smoke.run import prove_deployment
    from infra.hooks.watch import expect_watch

    identity = open_identity(os.environ)
    rest = Rest(identity.token, time)
    prove_deployment(os.environ, rest, identity.token, time)
    set_values(expect_watch(read_outputs(os.environ), rest), os.environ)


def deletable() -> None:
    """Refuse `azd down` where it would delete what others made."""
    from infra.hooks.deployer.existing import refuse_to_delete

    refuse_to_delete(os.environ)


STEPS: dict[str, Callable[[], None]] = {
    step.__name__: step for step in (preprovision, provisioned, deployable, deployed, deletable)
}


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
            raise HookRefused(f"the hooks need Python 3.11 to 3.14, as the app does; this is {sys.version.split()[0]}")
        if given.step in known:
            given.run()
        else:
            print(package.table_of(package.build(ROOT, given.to), given.to))
    except HookRefused as error:
        return _refuse(given.step, error.faults)
    except KeyboardInterrupt:
        return _refuse(given.step, ["interrupted; it is safe to run again"])
    except Exception as error:  # the last line of a hook is for a person
        if os.environ.get(TRACEBACK):
            raise
        said = " ".join(str(error).split())
        return _refuse(given.step, [f"{type(error).__name__}: {said} ({TRACEBACK}=1 shows the place in the code)"])
    return 0


def _refuse(step: str, faults: Iterable[str]) -> int:
    for fault in faults:
        print(f"{step}: {fault}", file=sys.stderr)
    return 1


def _database(outputs: Outputs, identity: "Identity") -> "ServerDatabase":
    from core.store.sqlserver.connections import TOKEN_SCOPE, Access
    from infra.hooks import room
    from infra.hooks.database import ServerDatabase

    access = Access(token=lambda: identity.token(TOKEN_SCOPE))
    return ServerDatabase(outputs.settings["STORE_CONNECTION"], access, time, room.rooms_in(os.environ))


def _container(outputs: Outputs, identity: "Identity") -> object:
    from azure.storage.blob import BlobServiceClient

    return BlobServiceClient(outputs.lake_blob_endpoint, identity).get_container_client(outputs.lake_container)


if __name__ == "__main__":
    logging.disable()  # Azure's clients and the store would log each refusal over many lines before the one of the hook
    sys.exit(main())
