// The event hub: namespace without keys, the hub, a consumer group for the trigger and one for the reader, Capture.

@description('Name of the namespace.')
@minLength(6)
@maxLength(50)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Name of the event hub.')
@minLength(1)
@maxLength(50)
param hubName string

@description('Number of partitions: up to 32 in Standard, 100 in Premium. It limits the instances of the trigger and cannot change later in Standard.')
@minValue(1)
@maxValue(100)
param partitionCount int

@description('Hours for which the hub retains events: the longest outage without loss.')
@minValue(1)
@maxValue(168)
param retentionHours int

@description('Tier of the namespace. Standard has up to 40 throughput units; docs/capacity.md says when that is too small.')
@allowed([
  'Standard'
  'Premium'
])
param tier string

@description('Initial throughput units of Standard, each for 1,000 events/s or 1 MB/s in and twice the bytes out.')
@minValue(1)
@maxValue(40)
param throughputUnits int

@description('Throughput units up to which a Standard namespace grows by itself. It never shrinks by itself, and each unit is billed, with Capture a second time.')
@minValue(1)
@maxValue(40)
param maximumThroughputUnits int

@description('Processing units of Premium, each for 5 to 10 MB/s in.')
@allowed([
  1
  2
  4
  6
  8
  10
  12
  16
])
param processingUnits int

@description('True spreads the namespace over the zones of the region.')
param zoneRedundant bool

@description('Consumer group of the trigger. The host reads it with an epoch, so no other reader may use it.')
@minLength(1)
@maxLength(50)
param triggerGroup string

@description('Consumer group of the reader that fetches events for gaps and replays.')
@minLength(1)
@maxLength(50)
param readerGroup string

@description('True stores every event in the lake as Avro, for replays after the retention.')
param captureEnabled bool

@description('Resource id of the lake that Capture writes to.')
@minLength(10)
@maxLength(400)
param captureAccountId string

@description('Container that Capture writes to.')
@minLength(3)
@maxLength(63)
param captureContainer string

@description('Resource id of the identity that Capture signs in with; it needs its role before the hub is created.')
@minLength(10)
@maxLength(400)
param captureIdentityId string

@description('False allows access through private endpoints only.')
param publicAccess bool

@description('Logs of the service that the workspace stores: none, essential (rare and cheap), or all.')
@allowed([
  'none'
  'essential'
  'all'
])
param diagnosticLogs string

@description('Resource id of the workspace that stores these logs.')
@minLength(10)
@maxLength(400)
param workspaceId string

@description('True refuses every deletion of the namespace until the lock is deleted.')
param locked bool

var inflates = tier == 'Standard' && maximumThroughputUnits > throughputUnits

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' = {
  name: name
  location: location
  tags: tags
  sku: { name: tier, tier: tier, capacity: tier == 'Premium' ? processingUnits : throughputUnits }
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${captureIdentityId}': {} } }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    isAutoInflateEnabled: inflates
    maximumThroughputUnits: inflates ? maximumThroughputUnits : 0
    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'
    zoneRedundant: zoneRedundant ? true : null // where a region has zones, Azure uses them anyway
  }
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' = {
  parent: namespace
  name: hubName
  properties: {
    partitionCount: partitionCount
    retentionDescription: { cleanupPolicy: 'Delete', retentionTimeInHours: retentionHours }
    captureDescription: {
      enabled: captureEnabled // without the object, a Capture that once was on would stay on
      encoding: 'Avro' // AvroDeflate is deprecated
      intervalInSeconds: 300
      sizeLimitInBytes: 314572800
      skipEmptyArchives: true
      destination: {
        name: 'EventHubArchive.AzureBlockBlob'
        identity: { type: 'UserAssigned', userAssignedIdentity: captureIdentityId }
        properties: {
          storageAccountResourceId: captureAccountId
          blobContainer: captureContainer
          archiveNameFormat: '{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}'
        }
      }
    }
  }
}

resource trigger 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = {
  parent: hub
  name: triggerGroup
}

resource reader 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = {
  parent: hub
  name: readerGroup
}

// Failures of Capture, growth of the namespace, changes of its resources, and counts of errors: a few lines a day.
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (diagnosticLogs != 'none') {
  name: 'to-workspace'
  scope: namespace
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated' // one table a category
    logs: diagnosticLogs == 'all'
      ? [{ categoryGroup: 'allLogs', enabled: true }]
      : map(['ArchiveLogs', 'AutoScaleLogs', 'DiagnosticErrorLogs', 'OperationalLogs'], category => { category: category, enabled: true })
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  name: 'keep'
  scope: namespace
  properties: { level: 'CanNotDelete', notes: 'It holds the only copy of events that are not committed yet.' }
}

@description('Name of the namespace.')
output name string = namespace.name

@description('Resource id of the namespace.')
output resourceId string = namespace.id

@description('Host name of the namespace, for clients.')
output fullyQualifiedNamespace string = '${namespace.name}.servicebus.windows.net'

@description('Name of the hub.')
output hubName string = hub.name

@description('Resource id of the hub.')
output hubId string = hub.id

@description('The hub as the target of a grant.')
output grantTarget string = '${namespace.name}/${hub.name}'

@description('Consumer group of the trigger.')
output triggerGroup string = trigger.name

@description('Consumer group of the reader.')
output readerGroup string = reader.name
