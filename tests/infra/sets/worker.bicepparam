using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param workerRegistryId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.ContainerRegistry/registries/contosoimages'
param workerImage = 'contosoimages.azurecr.io/hubledger:1'
