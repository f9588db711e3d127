using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param iotHubId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.Devices/IotHubs/iot-theirs'
param eventHubName = 'iothub-ehub-iot-theirs-1'
param eventHubConnectionId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-vault/providers/Microsoft.KeyVault/vaults/kv-theirs/secrets/built-in'
param partitionCount = 4
param workerImage = 'docker.io/mine/hubledger:1'
