// The function app on Flex Consumption. It scales per function: each Event Hubs trigger has its own instances (one
// per partition at most), all HTTP functions share instances, and so do all Durable functions.

@description('Name of the app, unique in Azure.')
param name string

@description('Name of the plan of the app.')
param planName string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Ids of the identity that the app runs as.')
param identity { resource: string, client: string, principal: string }

@description('Container that stores the deployed packages.')
param deploymentContainer string

@description('Addresses of the account where the host and Durable Functions store their state.')
param hostStorage { blob: string, dfs: string, queue: string, table: string }

@description('Connection string of Application Insights; it names the component and gives no access.')
param telemetryConnection string

@description('Settings of the app (docs/configuration.md); those of the host are added here.')
@secure()
param settings { *: string }

@description('Sizes and strategies, as main.bicep describes them.')
param choices {
  pythonVersion: string
  instanceMemoryMB: int
  maximumInstances: int
  ingestAlwaysReady: int
  httpAlwaysReady: int
  durableAlwaysReady: int
  updateStrategy: string
  zoneRedundant: bool // Azure then keeps two instances ready where one is asked for
}

@description('True turns the trigger off, because the worker ingests. HTTP, timers and Durable go on.')
param ingestDisabled bool

@description('Resource id of the subnet for outgoing calls.')
param subnetId string

@description('Client id of the app registration that callers sign in to; empty turns sign-in off.')
param signInClientId string

var signsIn = !empty(signInClientId)

var alwaysReady = concat(
  choices.ingestAlwaysReady > 0 && !ingestDisabled ? [{ name: 'function:ingest', instanceCount: choices.ingestAlwaysReady }] : [],
  choices.httpAlwaysReady > 0 ? [{ name: 'http', instanceCount: choices.httpAlwaysReady }] : [],
  choices.durableAlwaysReady > 0 ? [{ name: 'durable', instanceCount: choices.durableAlwaysReady }] : []
)

// Settings that the host, its language worker and the SDKs need.
var hostSettings = {
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.client};Authorization=AAD'
  APPLICATIONINSIGHTS_CONNECTION_STRING: telemetryConnection
  AZURE_CLIENT_ID: identity.client
  AzureWebJobsStorage__blobServiceUri: hostStorage.blob
  AzureWebJobsStorage__clientId: identity.client
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__queueServiceUri: hostStorage.queue
  AzureWebJobsStorage__tableServiceUri: hostStorage.table
  FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '1048576' // octets, above the API's own limit: the host answers an empty 500
  OTEL_METRIC_EXPORT_INTERVAL: '300000' // milliseconds: a fifth of the metrics of a minute, and of their cost
  OTEL_PYTHON_DISABLED_INSTRUMENTATIONS: 'azure_sdk,django,fastapi,flask,psycopg2,requests,urllib,urllib3'
  OTEL_TRACES_SAMPLER: 'microsoft.rate_limited' // of requests only: log lines are never sampled
  OTEL_TRACES_SAMPLER_ARG: '0.1'
  PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY: 'true'
  PYTHON_APPLICATIONINSIGHTS_LOGGER_NAME: 'hubledger'
  PYTHON_THREADPOOL_THREAD_COUNT: '32' // the most: a batch that waits must not take the thread of a different partition
}

// A hub that is reached by a connection string takes no identity.
var hubIdentity = contains(settings, 'EVENTHUB')
  ? {}
  : {
      EVENTHUB__clientId: identity.client
      EVENTHUB__credential: 'managedidentity'
    }

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: planName
  location: common.location
  tags: common.tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true, zoneRedundant: choices.zoneRedundant }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  name: name
  location: common.location
  tags: union(common.tags, { 'azd-service-name': 'hubledger' }) // the service of azure.yaml, by which azd finds the app
  kind: 'functionapp,linux'
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${identity.resource}': {} } }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identity.resource // for settings that an operator keeps in Key Vault
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
          authentication: { type: 'UserAssignedIdentity', userAssignedIdentityResourceId: identity.resource }
        }
      }
      runtime: { name: 'python', version: choices.pythonVersion }
      scaleAndConcurrency: {
        alwaysReady: alwaysReady
        instanceMemoryMB: choices.instanceMemoryMB
        maximumInstanceCount: choices.maximumInstances
        triggers: { http: { perInstanceConcurrency: 16 } }
      }
      // Azure knows it from 2023-12-01 on; the types of Bicep do not.
      #disable-next-line BCP037
      siteUpdateStrategy: { type: choices.updateStrategy }
    }
  }
}

resource appSettings 'Microsoft.Web/sites/config@2024-04-01' = {
  parent: app
  name: 'appsettings'
  properties: union(settings, hostSettings, hubIdentity, ingestDisabled ? { 'AzureWebJobs.ingest.Disabled': 'true' } : {})
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

// Sign-in with Microsoft Entra (App Service authentication), on or off by parameter. It lets callers without a token
// pass, because monitors and the company's web site come with a key only; the app itself checks the role of a caller. The
// platform removes the headers of a principal from every request that comes from outside, and sets its own.
// No client secret: the registration issues id tokens, so nothing has to be stored or rotated.
resource signIn 'Microsoft.Web/sites/config@2024-04-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: signsIn, runtimeVersion: '~1' }
    globalValidation: { requireAuthentication: false, unauthenticatedClientAction: 'AllowAnonymous' }
    httpSettings: { requireHttps: true, forwardProxy: { convention: 'NoProxy' } }
    identityProviders: {
      azureActiveDirectory: {
        enabled: signsIn
        registration: {
          clientId: signsIn ? signInClientId : null
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
        }
        validation: { allowedAudiences: signsIn ? ['api://${signInClientId}'] : [] } // beside the client id itself
      }
    }
    login: {
      preserveUrlFragmentsForLogins: true // the operator's page has its places after the #
      tokenStore: { enabled: false }
    }
  }
  dependsOn: [scm]
}

@description('Address of the app.')
output uri string = 'https://${app.properties.defaultHostName}'

@description('Resource id of the app.')
output resourceId string = app.id
