// The function app on Flex Consumption. It scales per function: each Event Hubs trigger has its own instances (one
// per partition at most), all HTTP functions share instances, and so do all Durable functions.

@description('Name of the app, unique in Azure.')
@minLength(2)
@maxLength(60)
param name string

@description('Name of the plan of the app.')
@minLength(1)
@maxLength(60)
param planName string

@description('Azure region; not every region has Flex Consumption.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Name of the service in azure.yaml, by which azd finds the app.')
@minLength(1)
@maxLength(60)
param serviceName string

@description('Resource id of the identity that the app runs as.')
@minLength(10)
@maxLength(400)
param identityId string

@description('Client id of that identity.')
@minLength(36)
@maxLength(36)
param identityClientId string

@description('Python version of the app; the project supports these.')
@allowed([
  '3.11'
  '3.12'
  '3.13'
  '3.14'
])
param pythonVersion string

@description('Container that stores the deployed packages.')
@minLength(3)
@maxLength(63)
param deploymentContainer string

@description('Blob, queue and table addresses of the account where the host and Durable Functions store their state.')
param hostStorage { blob: string, queue: string, table: string }

@description('Connection string of Application Insights; it names the component and gives no access.')
@minLength(10)
@maxLength(1000)
param telemetryConnection string

@description('Settings of the app (docs/configuration.md); those of the host are added here.')
@secure()
param settings { *: string }

@description('Memory of an instance in MB, which also sets its share of processor time.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int

@description('Limit of instances of the whole app.')
@minValue(1)
@maxValue(1000)
param maximumInstances int

@description('True turns the trigger off, because the worker ingests. HTTP, timers and Durable go on.')
param ingestDisabled bool

@description('Instances of the trigger that are always ready. With 0, an idle hub costs nothing, and the first event waits for a cold start.')
@minValue(0)
@maxValue(32)
param ingestAlwaysReady int

@description('Instances for HTTP that are always ready.')
@minValue(0)
@maxValue(32)
param httpAlwaysReady int

@description('Instances for Durable Functions that are always ready: they start retries and replays.')
@minValue(0)
@maxValue(32)
param durableAlwaysReady int

@description('Recreate restarts all instances at once on an update. RollingUpdate lets running work end first, and for some minutes both versions run.')
@allowed([
  'Recreate'
  'RollingUpdate'
])
param updateStrategy string

@description('True spreads the instances over the zones of the region; Azure then keeps two instances ready where one is asked for.')
param zoneRedundant bool

@description('HTTP requests that one instance takes at a time.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int

@description('Resource id of the subnet for outgoing calls.')
@minLength(10)
@maxLength(400)
param subnetId string

var alwaysReady = concat(
  ingestAlwaysReady > 0 && !ingestDisabled ? [{ name: 'function:ingest', instanceCount: ingestAlwaysReady }] : [],
  httpAlwaysReady > 0 ? [{ name: 'http', instanceCount: httpAlwaysReady }] : [],
  durableAlwaysReady > 0 ? [{ name: 'durable', instanceCount: durableAlwaysReady }] : []
)

// Settings that the host, its language worker and the SDKs need.
var hostSettings = {
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identityClientId};Authorization=AAD'
  APPLICATIONINSIGHTS_CONNECTION_STRING: telemetryConnection
  AZURE_CLIENT_ID: identityClientId
  AzureWebJobsStorage__blobServiceUri: hostStorage.blob
  AzureWebJobsStorage__clientId: identityClientId
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__queueServiceUri: hostStorage.queue
  AzureWebJobsStorage__tableServiceUri: hostStorage.table
  EVENTHUB__clientId: identityClientId
  EVENTHUB__credential: 'managedidentity'
  FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '1048576' // octets, above the API's own limit: the host answers an empty 500
  OTEL_METRIC_EXPORT_INTERVAL: '300000' // milliseconds: a fifth of the metrics of a minute, and of their cost
  OTEL_PYTHON_DISABLED_INSTRUMENTATIONS: 'azure_sdk,django,fastapi,flask,psycopg2,requests,urllib,urllib3'
  OTEL_TRACES_SAMPLER: 'microsoft.rate_limited' // of requests only: log lines are never sampled
  OTEL_TRACES_SAMPLER_ARG: '0.1'
  PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY: 'true'
  PYTHON_APPLICATIONINSIGHTS_LOGGER_NAME: 'hubledger'
  PYTHON_THREADPOOL_THREAD_COUNT: '32' // the most: a batch that waits must not take the thread of a different partition
}

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true, zoneRedundant: zoneRedundant }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': serviceName })
  kind: 'functionapp,linux'
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${identityId}': {} } }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identityId // for settings that an operator keeps in Key Vault
    virtualNetworkSubnetId: subnetId
    siteConfig: {
      http20Enabled: true
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${hostStorage.blob}${deploymentContainer}'
          authentication: { type: 'UserAssignedIdentity', userAssignedIdentityResourceId: identityId }
        }
      }
      runtime: { name: 'python', version: pythonVersion }
      scaleAndConcurrency: {
        alwaysReady: alwaysReady
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstances
        triggers: { http: { perInstanceConcurrency: httpConcurrency } }
      }
      // Azure knows it from 2023-12-01 on; the types of Bicep do not.
      #disable-next-line BCP037
      siteUpdateStrategy: { type: updateStrategy }
    }
  }
}

resource appSettings 'Microsoft.Web/sites/config@2024-04-01' = {
  parent: app
  name: 'appsettings'
  properties: union(settings, hostSettings, ingestDisabled ? { 'AzureWebJobs.ingest.Disabled': 'true' } : {})
}

// Deployment by user name and password is off; azd deploys with a token. Two changes of one app at a time conflict (409).
resource ftp 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01' = {
  parent: app
  name: 'ftp'
  properties: { allow: false }
  dependsOn: [appSettings]
}

resource scm 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01' = {
  parent: app
  name: 'scm'
  properties: { allow: false }
  dependsOn: [ftp]
}

@description('Name of the app.')
output name string = app.name

@description('Address of the app.')
output uri string = 'https://${app.properties.defaultHostName}'

@description('Resource id of the app.')
output resourceId string = app.id
