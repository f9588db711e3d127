// One storage account that only Entra identities can use: no shared keys, no SAS signed by them, no anonymous blobs.

@description('Name of the account: lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags object

@description('Redundancy. Zone-redundant storage survives the loss of a data centre; not every region has it.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param redundancy string = 'Standard_LRS'

@description('True makes a data lake (hierarchical namespace). The host cannot store its state in such an account.')
param isLake bool = false

@description('Blob containers to create.')
@minLength(1)
@maxLength(10)
param containers string[]

@description('Public: requests from any network, which still need a token. TrustedServices: Azure services that sign in by identity, as Capture does, and private endpoints. Private: private endpoints only.')
@allowed([
  'Public'
  'TrustedServices'
  'Private'
])
param access string = 'Public'

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: redundancy }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    isHnsEnabled: isLake
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: access == 'Private' ? 'Disabled' : 'Enabled'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: access == 'TrustedServices' ? 'AzureServices' : 'None'
      defaultAction: access == 'Public' ? 'Allow' : 'Deny'
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: { enabled: true, days: 7 }
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = [
  for each in containers: {
    parent: blobs
    name: each
    properties: { publicAccess: 'None' }
  }
]

@description('Name of the account.')
output name string = account.name

@description('Resource id of the account.')
output resourceId string = account.id

@description('Address of blobs.')
output blobEndpoint string = account.properties.primaryEndpoints.blob

@description('Address of queues.')
output queueEndpoint string = account.properties.primaryEndpoints.queue

@description('Address of tables.')
output tableEndpoint string = account.properties.primaryEndpoints.table

@description('Address of the lake (dfs).')
output lakeEndpoint string = account.properties.primaryEndpoints.dfs
