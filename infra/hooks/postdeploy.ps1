# After `azd deploy`: run the smoke tests, which send one event, and print the address of the page.
& (Join-Path $PSScriptRoot 'run.ps1') -Step deployed
exit $LASTEXITCODE
