using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param eventHubNamespaceId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.EventHub/namespaces/evhns-theirs'
param eventHubName = 'orders'
param triggerGroup = 'hubledger-reader'
param workerRegistryId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.ContainerRegistry/registries/contosoimages'
param workerImage = 'contosoimages2.azurecr.io/hubledger:1'
param vnetAddressPrefix = '10.0.0.0/25'
param sqlAutoPauseMinutes = 14
param sqlMaxSizeGiB = 2048
param maximumInstances = 1
param signInClientId = 'mine'
