#!/bin/sh
# After `azd deploy`: run the smoke tests, which send one event, and print the address of the page.
set -eu
cd "$(dirname "$0")/../.."
exec infra/hooks/run.sh deployed
