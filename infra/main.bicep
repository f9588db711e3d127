// Hubledger in its own resource group: storage, event hub, database, function app, telemetry, and optionally Spark and a
// virtual network. This file only wires the modules; each file of app/ is one concern. No resource here has a key.
targetScope = 'subscription'

@description('Name of the environment: part of the name of the group and, as a hash, of the names of its resources.')
@minLength(1)
@maxLength(64)
param environmentName string

@description('Azure region of all resources.')
@minLength(2)
@maxLength(40)
param location string

@description('Object id of the deployer, a person or a pipeline, that may write to the lake.')
@minLength(36)
@maxLength(36)
param principalId string = deployer().objectId

@description('Kind of the deployer.')
@allowed([
  'User'
  'Group'
  'ServicePrincipal'
])
param principalType string = 'User'

@description('Public address from which the deployer migrates the database; none or empty when the deployer is inside Azure.')
@maxLength(15)
param deployerAddress string = ''

@description('Name of the administrator of the database: only a label, because the id decides.')
@minLength(1)
@maxLength(256)
param sqlAdministratorName string = 'hubledger-deployer'

@description('Object id of the group or user, or application id of the service principal, that administers the database; empty for the deployer, unless it is a service principal.')
@maxLength(36)
param sqlAdministratorId string = ''

@description('Kind of sqlAdministratorId.')
@allowed([
  'User'
  'Group'
  'ServicePrincipal'
])
param sqlAdministratorType string = 'Group'

@description('Tier of the event hub; docs/capacity.md says when Standard is too small.')
@allowed([
  'Standard'
  'Premium'
])
param hubTier string = 'Standard'

@description('Number of partitions of the hub: it limits the instances of the trigger and cannot change later in Standard.')
@minValue(1)
@maxValue(100)
param partitionCount int = 16

@description('Hours for which the hub retains events.')
@minValue(1)
@maxValue(168)
param retentionHours int = 168

@description('Initial throughput units, each for 1,000 events/s or 1 MB/s in; processing units in Premium.')
@minValue(1)
@maxValue(40)
param throughputUnits int = 1

@description('Throughput units up to which the namespace grows by itself.')
@minValue(1)
@maxValue(40)
param maximumThroughputUnits int = 10

@description('True stores every event in the lake.')
param captureEnabled bool = true

@description('Serverless for a changing load, provisioned for a steady one.')
@allowed([
  'serverless'
  'provisioned'
])
param sqlCompute string = 'serverless'

@description('Service tier of the database.')
@allowed([
  'GeneralPurpose'
  'BusinessCritical'
  'Hyperscale'
])
param sqlTier string = 'GeneralPurpose'

@description('Virtual cores of the database; docs/capacity.md computes them.')
@minValue(1)
@maxValue(128)
param sqlVCores int = 2

@description('Largest size of the database in GiB.')
@minValue(1)
@maxValue(4096)
param sqlMaxSizeGiB int = 256

@description('Minutes without a session after which a serverless database pauses; -1 for never.')
@minValue(-1)
@maxValue(10080)
param sqlAutoPauseMinutes int = -1

@description('Place of the backups of the database.')
@allowed([
  'Local'
  'Zone'
  'Geo'
])
param sqlBackupRedundancy string = 'Local'

@description('Redundancy of both storage accounts.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param storageRedundancy string = 'Standard_LRS'

@description('Python version of the app.')
@allowed([
  '3.11'
  '3.12'
])
param pythonVersion string = '3.11'

@description('Settings of the app for this environment; they override infra/settings.json and the settings that are wired below.')
param appSettings object = {}

@description('Memory of an instance in MB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Limit of instances of the app; the trigger has at most one per partition.')
@minValue(1)
@maxValue(1000)
param maximumInstances int = 40

@description('Instances of the trigger that are always ready.')
@minValue(0)
@maxValue(32)
param ingestAlwaysReady int = 1

@description('Instances for HTTP that are always ready.')
@minValue(0)
@maxValue(32)
param httpAlwaysReady int = 0

@description('HTTP requests that one instance takes at a time.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 16

@description('Engine of the aggregation.')
@allowed([
  'none'
  'synapse'
  'databricks'
])
param sparkEngine string = 'none'

@description('With true, the lake also has the rows that aggregates read. Each of their tables has one more Spark job.')
param lakeRows bool = false

@description('Size of a node of the Synapse pool.')
@allowed([
  'Small'
  'Medium'
  'Large'
])
param sparkNodeSize string = 'Small'

@description('Limit of nodes of the Synapse pool.')
@minValue(3)
@maxValue(200)
param sparkMaximumNodes int = 3

@description('True gives the app a virtual network and closes storage, hub and database to all other networks.')
param vnetEnabled bool = false

@description('Address space of the virtual network.')
@minLength(9)
@maxLength(18)
param vnetAddressPrefix string = '10.0.0.0/24'

@description('Client id of the app registration that people sign in to; empty for no sign-in (docs/deploy.md).')
@maxLength(36)
param signInClientId string = ''

@description('Addresses that get a mail when an alert fires.')
@maxLength(20)
param alertEmails string[] = []

@description('Age in seconds of the oldest event that is not accounted for; an alert fires above it.')
@minValue(1)
@maxValue(604800)
param alertLagSeconds int = 300

@description('Age in seconds of the oldest commit that waits for the aggregation above which an alert fires.')
@minValue(60)
@maxValue(604800)
param alertAggregationLagSeconds int = 3600

@description('Number of open letters above which an alert fires.')
@minValue(0)
@maxValue(100000000)
param alertOpenLetters int = 1000

@description('Share of the retention, in percent, that an open letter may use up before an alert fires.')
@minValue(1)
@maxValue(100)
param alertRetentionPercent int = 50

@description('Days for which logs are stored.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

@description('Gigabytes of logs a day after which the workspace takes in no more; -1 for no limit.')
@minValue(-1)
@maxValue(1000)
param logDailyGigabytes int = 5

var names = loadJsonContent('abbreviations.json')
var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = { 'azd-env-name': environmentName }
var admittedAddress = deployerAddress == 'none' ? '' : deployerAddress
var deployerSid = principalType == 'ServicePrincipal' ? '' : principalId // that of a service principal is its application id
var captureContainer = 'capture'
var deploymentContainer = 'deployments'
var sparkContainer = 'spark'
var sparkFolder = 'abfss://${sparkContainer}@${lake.outputs.name}.dfs.${environment().suffixes.storage}'
var blobZone = 'privatelink.blob.${environment().suffixes.storage}'
var queueZone = 'privatelink.queue.${environment().suffixes.storage}'
var tableZone = 'privatelink.table.${environment().suffixes.storage}'
var lakeZone = 'privatelink.dfs.${environment().suffixes.storage}'
var hubZone = 'privatelink.servicebus.windows.net'
var sqlZone = 'privatelink${environment().suffixes.sqlServerHostname}'

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: '${names.resourceGroup}${environmentName}'
  location: location
  tags: tags
}

module appIdentity 'app/identity.bicep' = {
  name: 'app-identity'
  scope: group
  params: { name: '${names.userAssignedIdentity}app-${token}', location: location, tags: tags }
}

module captureIdentity 'app/identity.bicep' = {
  name: 'capture-identity'
  scope: group
  params: { name: '${names.userAssignedIdentity}capture-${token}', location: location, tags: tags }
}

module monitoring 'app/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    workspaceName: '${names.logAnalyticsWorkspace}${token}'
    componentName: '${names.applicationInsights}${token}'
    location: location
    tags: tags
    retentionDays: logRetentionDays
    dailyGigabytes: logDailyGigabytes
  }
}

module hostStorage 'app/storage.bicep' = {
  name: 'host-storage'
  scope: group
  params: {
    name: '${names.storageAccount}host${token}'
    location: location
    tags: tags
    redundancy: storageRedundancy
    containers: [deploymentContainer]
    access: vnetEnabled ? 'Private' : 'Public'
  }
}

module lake 'app/storage.bicep' = {
  name: 'lake'
  scope: group
  params: {
    name: '${names.storageAccount}lake${token}'
    location: location
    tags: tags
    redundancy: storageRedundancy
    isLake: true
    containers: [captureContainer, sparkContainer]
    access: vnetEnabled ? 'TrustedServices' : 'Public'
  }
}

module captureRoles 'app/roles.bicep' = {
  name: 'capture-roles'
  scope: group
  params: {
    storageGrants: [
      {
        target: lake.outputs.name
        role: 'Storage Blob Data Contributor'
        principalId: captureIdentity.outputs.principalId
        principalType: 'ServicePrincipal'
        reason: 'Capture writes the events of the hub into the lake; Azure refuses to create the hub without this role.'
      }
    ]
  }
}

module hub 'app/hub.bicep' = {
  name: 'hub'
  scope: group
  params: {
    name: '${names.eventHubNamespace}${token}'
    location: location
    tags: tags
    hubName: 'telemetry'
    tier: hubTier
    partitionCount: partitionCount
    retentionHours: retentionHours
    throughputUnits: throughputUnits
    maximumThroughputUnits: maximumThroughputUnits
    triggerGroup: 'hubledger'
    readerGroup: 'hubledger-reader'
    captureEnabled: captureEnabled
    captureAccountId: lake.outputs.resourceId
    captureContainer: captureContainer
    captureIdentityId: captureIdentity.outputs.resourceId
    publicAccess: !vnetEnabled
  }
  dependsOn: [captureRoles]
}

module sql 'app/sql.bicep' = {
  name: 'sql'
  scope: group
  params: {
    name: '${names.sqlServer}${token}'
    location: location
    tags: tags
    databaseName: 'hubledger'
    administratorName: sqlAdministratorName
    administratorId: empty(sqlAdministratorId) ? deployerSid : sqlAdministratorId
    administratorType: empty(sqlAdministratorId) ? principalType : sqlAdministratorType
    compute: sqlCompute
    tier: sqlTier
    vCores: sqlVCores
    autoPauseMinutes: sqlAutoPauseMinutes
    maxSizeGiB: sqlMaxSizeGiB
    backupRedundancy: sqlBackupRedundancy
    publicAccess: !vnetEnabled
    deployerAddress: admittedAddress
  }
}

module spark 'app/spark.bicep' = {
  name: 'spark'
  scope: group
  params: {
    engine: sparkEngine
    synapseName: '${names.synapseWorkspace}${token}'
    databricksName: '${names.databricksWorkspace}${token}'
    location: location
    tags: tags
    lakeEndpoint: lake.outputs.lakeEndpoint
    lakeId: lake.outputs.resourceId
    lakeContainer: sparkContainer
    deployerPrincipalId: principalId
    deployerAddress: admittedAddress
    appPrincipalId: appIdentity.outputs.principalId
    nodeSize: sparkNodeSize
    maximumNodes: sparkMaximumNodes
  }
}

module roles 'app/roles.bicep' = {
  name: 'app-roles'
  scope: group
  params: {
    storageGrants: concat(
      [
        {
          target: hostStorage.outputs.name
          role: 'Storage Blob Data Owner'
          principalId: appIdentity.outputs.principalId
          principalType: 'ServicePrincipal'
          reason: 'The host keeps leases, checkpoints, timer status and the deployed package in blobs; it needs Owner for leases.'
        }
        {
          target: hostStorage.outputs.name
          role: 'Storage Queue Data Contributor'
          principalId: appIdentity.outputs.principalId
          principalType: 'ServicePrincipal'
          reason: 'Durable Functions keeps its control and work-item queues here.'
        }
        {
          target: hostStorage.outputs.name
          role: 'Storage Table Data Contributor'
          principalId: appIdentity.outputs.principalId
          principalType: 'ServicePrincipal'
          reason: 'Durable Functions keeps instances and history here.'
        }
        {
          target: lake.outputs.name
          role: 'Storage Blob Data Contributor'
          principalId: appIdentity.outputs.principalId
          principalType: 'ServicePrincipal'
          reason: 'The app commits the Delta tables whose files Spark writes.'
        }
        {
          target: lake.outputs.name
          role: 'Storage Blob Data Contributor'
          principalId: principalId
          principalType: principalType
          reason: 'The deployer uploads the jobs.'
        }
      ],
      sparkEngine == 'synapse'
        ? [
            {
              target: lake.outputs.name
              role: 'Storage Blob Data Contributor'
              principalId: spark.outputs.synapsePrincipalId
              principalType: 'ServicePrincipal'
              reason: 'The Synapse workspace keeps its own files in its default lake.'
            }
          ]
        : []
    )
    hubGrants: [
      {
        target: hub.outputs.name
        role: 'Event Hubs Data Receiver'
        principalId: appIdentity.outputs.principalId
        principalType: 'ServicePrincipal'
        reason: 'The trigger and the reader of gaps and replays receive events; the app sends none.'
      }
    ]
    telemetryGrants: [
      {
        target: monitoring.outputs.componentName
        role: 'Monitoring Metrics Publisher'
        principalId: appIdentity.outputs.principalId
        principalType: 'ServicePrincipal'
        reason: 'Application Insights takes telemetry from Entra identities only.'
      }
    ]
  }
}

module network 'app/network.bicep' = if (vnetEnabled) {
  name: 'network'
  scope: group
  params: {
    name: '${names.virtualNetwork}${token}'
    location: location
    tags: tags
    addressPrefix: vnetAddressPrefix
    zones: [blobZone, queueZone, tableZone, lakeZone, hubZone, sqlZone]
    targets: [
      { name: '${names.privateEndpoint}host-blob', resourceId: hostStorage.outputs.resourceId, service: 'blob', zone: blobZone }
      { name: '${names.privateEndpoint}host-queue', resourceId: hostStorage.outputs.resourceId, service: 'queue', zone: queueZone }
      { name: '${names.privateEndpoint}host-table', resourceId: hostStorage.outputs.resourceId, service: 'table', zone: tableZone }
      { name: '${names.privateEndpoint}lake-blob', resourceId: lake.outputs.resourceId, service: 'blob', zone: blobZone }
      { name: '${names.privateEndpoint}lake-dfs', resourceId: lake.outputs.resourceId, service: 'dfs', zone: lakeZone }
      { name: '${names.privateEndpoint}hub', resourceId: hub.outputs.resourceId, service: 'namespace', zone: hubZone }
      { name: '${names.privateEndpoint}sql', resourceId: sql.outputs.resourceId, service: 'sqlServer', zone: sqlZone }
    ]
  }
}

module function 'app/function.bicep' = {
  name: 'function'
  scope: group
  params: {
    name: '${names.functionApp}${token}'
    planName: '${names.functionPlan}${token}'
    location: location
    tags: tags
    serviceName: 'hubledger'
    identityId: appIdentity.outputs.resourceId
    identityClientId: appIdentity.outputs.clientId
    pythonVersion: pythonVersion
    deploymentContainer: deploymentContainer
    hostStorage: {
      blob: hostStorage.outputs.blobEndpoint
      queue: hostStorage.outputs.queueEndpoint
      table: hostStorage.outputs.tableEndpoint
    }
    telemetryConnection: monitoring.outputs.connectionString
    wiredSettings: {
      DATABRICKS_URL: sparkEngine == 'databricks' ? spark.outputs.submitEndpoint : ''
      EVENTHUB__fullyQualifiedNamespace: hub.outputs.fullyQualifiedNamespace
      EVENTHUB_CONSUMER_GROUP: hub.outputs.triggerGroup
      EVENTHUB_NAME: hub.outputs.hubName
      HUB_READER_CONSUMER_GROUP: hub.outputs.readerGroup
      LAKE: sparkEngine == 'none' ? '' : '${sparkFolder}/lake'
      LAKE_ROWS: lakeRows ? 'true' : 'false'
      LIVY_DIALECT: sparkEngine == 'synapse' ? 'synapse' : ''
      LIVY_URL: sparkEngine == 'synapse' ? spark.outputs.submitEndpoint : ''
      SPARK_ENGINE: sparkEngine == 'synapse' ? 'livy' : sparkEngine
      SPARK_JOBS: sparkEngine == 'none' ? '' : '${sparkFolder}/jobs'
      STORE_CONNECTION: sql.outputs.connection
    }
    chosenSettings: appSettings
    instanceMemoryMB: instanceMemoryMB
    maximumInstances: maximumInstances
    ingestAlwaysReady: ingestAlwaysReady
    httpAlwaysReady: httpAlwaysReady
    httpConcurrency: httpConcurrency
    subnetId: vnetEnabled ? network!.outputs.appSubnetId : ''
  }
  dependsOn: [roles] // the first start of the host fails without them
}

module signIn 'app/signin.bicep' = {
  name: 'sign-in'
  scope: group
  params: { appName: function.outputs.name, clientId: signInClientId, tenantId: tenant().tenantId }
}

module alerts 'app/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    prefix: names.queryAlert
    actionGroupName: '${names.actionGroup}${token}'
    location: location
    tags: tags
    workspaceId: monitoring.outputs.workspaceId
    emails: alertEmails
    lagSeconds: alertLagSeconds
    aggregationLagSeconds: alertAggregationLagSeconds
    openLetters: alertOpenLetters
    retentionPercent: alertRetentionPercent
    retentionHours: retentionHours
  }
}

@description('Name of the resource group.')
output AZURE_RESOURCE_GROUP string = group.name

@description('Name of the function app.')
output FUNCTION_APP_NAME string = function.outputs.name

@description('Resource id of the function app, for the hooks.')
output FUNCTION_APP_ID string = function.outputs.resourceId

@description('Address of the function app.')
output FUNCTION_APP_URI string = function.outputs.uri

@description('Name of the app identity, and of its database user.')
output APP_IDENTITY_NAME string = appIdentity.outputs.name

@description('Client id of the app identity: the SID of its database user.')
output APP_IDENTITY_CLIENT_ID string = appIdentity.outputs.clientId

@description('Object id of the app identity, for its role in the Spark engine.')
output APP_IDENTITY_PRINCIPAL_ID string = appIdentity.outputs.principalId

@description('Connection string of the database; it holds no credentials.')
output STORE_CONNECTION string = sql.outputs.connection

@description('Namespace of the hub.')
output EVENTHUB__fullyQualifiedNamespace string = hub.outputs.fullyQualifiedNamespace

@description('Name of the hub.')
output EVENTHUB_NAME string = hub.outputs.hubName

@description('Consumer group of the trigger.')
output EVENTHUB_CONSUMER_GROUP string = hub.outputs.triggerGroup

@description('Blob address of the lake, where the hooks put the jobs.')
output LAKE_BLOB_ENDPOINT string = lake.outputs.blobEndpoint

@description('Container of the lake for jobs and results.')
output LAKE_CONTAINER string = sparkContainer

@description('Spark engine of this environment.')
output SPARK_ENGINE_CHOICE string = sparkEngine

@description('Name of the Synapse workspace; empty when there is none.')
output SYNAPSE_WORKSPACE string = spark.outputs.synapseName

@description('Name of the Spark pool; empty when there is none.')
output SYNAPSE_POOL string = spark.outputs.poolName

@description('Consumer group of the reader that fetches events for gaps and replays.')
output HUB_READER_CONSUMER_GROUP string = hub.outputs.readerGroup

@description('Engine of the aggregation, as the app names it.')
output SPARK_ENGINE string = sparkEngine == 'synapse' ? 'livy' : sparkEngine

@description('Folder of the jobs; empty without an engine.')
output SPARK_JOBS string = sparkEngine == 'none' ? '' : '${sparkFolder}/jobs'

@description('Folder of the results; empty without an engine.')
output LAKE string = sparkEngine == 'none' ? '' : '${sparkFolder}/lake'

@description('True if the lake also has the rows that aggregates read.')
output LAKE_ROWS string = lakeRows ? 'true' : 'false'

@description('Livy address of the Synapse pool; empty with a different engine.')
output LIVY_URL string = sparkEngine == 'synapse' ? spark.outputs.submitEndpoint : ''

@description('Dialect of that Livy; empty with a different engine.')
output LIVY_DIALECT string = sparkEngine == 'synapse' ? 'synapse' : ''

@description('Address of the Databricks workspace; empty with a different engine.')
output DATABRICKS_URL string = sparkEngine == 'databricks' ? spark.outputs.submitEndpoint : ''
