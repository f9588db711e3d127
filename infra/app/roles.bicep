// Role assignments, by the names of the roles. The reason of a grant becomes the description of the assignment, where an
// auditor reads it. Scopes are single accounts, hubs and components, never the group.

@description('One assignment; role is a key of roleIds.')
type grant = {
  target: string
  role: string
  to: { principalId: string, principalType: 'Group' | 'ServicePrincipal' | 'User' }
  reason: string
}

@description('Grants on storage accounts; target is the name of the account.')
@maxLength(20)
param storageGrants grant[] = []

@description('Grants on one container of a storage account; target is account/default/container.')
@maxLength(20)
param containerGrants grant[] = []

@description('Grants on event hubs; target is namespace/hub.')
@maxLength(20)
param hubGrants grant[] = []

@description('Grants on secrets of Key Vault; target is vault/secret.')
@maxLength(20)
param vaultGrants grant[] = []

@description('Grants on Application Insights; target is the name of the component.')
@maxLength(20)
param telemetryGrants grant[] = []

var roleIds = {
  'Event Hubs Data Receiver': 'a638d3c7-ab3a-418d-83e6-5f17a39d4fde'
  'Event Hubs Data Sender': '2b629674-e913-4c01-ae53-ef4638d8f975'
  'Key Vault Secrets User': '4633458b-17de-408a-b874-0445c86b69e6'
  'Monitoring Metrics Publisher': '3913510d-42f4-4e42-8a64-420c390055eb'
  'Storage Blob Data Contributor': 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
  'Storage Blob Data Owner': 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  'Storage Queue Data Contributor': '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
  'Storage Table Data Contributor': '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
}

// The properties of the assignments, in the order of the five lists.
var assignments = [
  for each in concat(storageGrants, hubGrants, telemetryGrants, containerGrants, vaultGrants): {
    description: each.reason
    principalId: each.to.principalId
    principalType: each.to.principalType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds[each.role])
  }
]

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' existing = [
  for each in storageGrants: {
    name: each.target
  }
]

resource onStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (each, index) in storageGrants: {
    name: guid(resourceGroup().id, each.target, each.to.principalId, each.role)
    scope: account[index]
    properties: assignments[index]
  }
]

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' existing = [
  for each in containerGrants: {
    name: each.target
  }
]

resource onContainer 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (each, index) in containerGrants: {
    name: guid(resourceGroup().id, container[index].id, each.to.principalId, each.role)
    scope: container[index]
    properties: assignments[length(storageGrants) + length(hubGrants) + length(telemetryGrants) + index]
  }
]

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' existing = [
  for each in hubGrants: {
    name: each.target
  }
]

resource onHub 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (each, index) in hubGrants: {
    name: guid(resourceGroup().id, each.target, each.to.principalId, each.role)
    scope: hub[index]
    properties: assignments[length(storageGrants) + index]
  }
]

resource component 'Microsoft.Insights/components@2020-02-02' existing = [
  for each in telemetryGrants: {
    name: each.target
  }
]

resource onTelemetry 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (each, index) in telemetryGrants: {
    name: guid(resourceGroup().id, each.target, each.to.principalId, each.role)
    scope: component[index]
    properties: assignments[length(storageGrants) + length(hubGrants) + index]
  }
]

resource entry 'Microsoft.KeyVault/vaults/secrets@2023-07-01' existing = [
  for each in vaultGrants: {
    name: each.target
  }
]

resource onVault 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (each, index) in vaultGrants: {
    name: guid(resourceGroup().id, each.target, each.to.principalId, each.role)
    scope: entry[index]
    properties: assignments[length(storageGrants) + length(hubGrants) + length(telemetryGrants) + length(containerGrants) + index]
  }
]
