// The worker on Container Apps: it ingests in place of the trigger. It has no ingress: only probes inside the environment reach
// its port. It scales by its processor time, which needs no sign-in.

@description('Name of the container app.')
param name string

@description('Name of its environment.')
param environmentName string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Image of the worker, with its registry and a version.')
param image string

@description('Resource id of the Azure registry that holds the image; empty for a public image.')
param registryId string

@description('Ids of the identity that the worker runs as: that of the app.')
param identity { resource: string, client: string, principal: string }

@description('Resource id of the workspace that gets the log lines.')
param workspaceId string

@description('Settings of the function app. Those of its API do not reach the worker, nor references to Key Vault without SecretUri.')
@secure()
param settings { *: string }

@description('Resource id of the subnet of the environment.')
param subnetId string

@description('Partitions of the hub: more replicas would have no work.')
param partitions int

@description('Replicas that always run, and the limit of them.')
param replicas { always: int, maximum: int }

var ofTheApi = ['OPERATOR_ROLE', 'RESIDENT_LINK_SECRET', 'RESIDENT_LINK_SECRET_PREVIOUS', 'TRUSTED_FRONT_DOOR']
var byAddress = '@Microsoft.KeyVault(SecretUri=' // Container Apps reads such a secret too, as the identity of the app
var ownSettings = map(
  filter(
    items(union(settings, { AZURE_CLIENT_ID: identity.client })),
    each => !contains(ofTheApi, each.key) && !empty(each.value) && (startsWith(each.value, byAddress) || !startsWith(each.value, '@Microsoft.KeyVault('))
  ),
  each => { key: each.key, value: each.value, name: toLower(replace(each.key, '_', '-')) } // of a secret: small letters, digits, hyphens
)
var most = min(max(replicas.always, replicas.maximum), partitions)
var registry = split(empty(registryId) ? identity.resource : registryId, '/') // of the identity where there is none: an id must split
var pullRole = '/providers/Microsoft.Authorization/roleDefinitions/7f951dda-4ed3-4680-a7ca-43fe172d538d' // AcrPull
var health = { path: '/health', port: 8080 }

module pull 'br/public:avm/ptn/authorization/resource-role-assignment:0.1.2' = if (!empty(registryId)) {
  name: 'hubledger-${deployment().name}-pull' // in the group of the registry, beside that of other environments
  scope: resourceGroup(registry[2], registry[4])
  params: {
    resourceId: registryId
    roleDefinitionId: pullRole
    roleName: 'AcrPull'
    principalId: identity.principal
    principalType: 'ServicePrincipal'
    description: 'Container Apps pulls the image of the worker with the identity of the app.'
    enableTelemetry: false
  }
}

module place 'br/public:avm/res/app/managed-environment:0.16.0' = {
  name: '${deployment().name}-environment'
  params: {
    name: environmentName
    location: common.location
    tags: common.tags
    enableTelemetry: false
    appLogsConfiguration: { destination: 'azure-monitor' } // the other destination needs a key of the workspace
    diagnosticSettings: [
      { workspaceResourceId: workspaceId, logCategoriesAndGroups: [{ categoryGroup: 'allLogs' }], metricCategories: [] }
    ]
    infrastructureSubnetResourceId: subnetId
    internal: true
    publicNetworkAccess: 'Disabled'
    workloadProfiles: [{ name: 'Consumption', workloadProfileType: 'Consumption' }]
    zoneRedundant: false
  }
}

module worker 'br/public:avm/res/app/container-app:0.23.0' = {
  name: '${deployment().name}-app'
  params: {
    name: name
    location: common.location
    tags: common.tags
    enableTelemetry: false
    environmentResourceId: place.outputs.resourceId
    managedIdentities: { userAssignedResourceIds: [identity.resource] }
    registries: empty(registryId)
      ? []
      : [{ server: first(split(image, '/')), identity: identity.resource }]
    secrets: map( // so that no reader of the app sees a setting
      ownSettings,
      each => startsWith(each.value, byAddress)
        ? {
            name: each.name
            keyVaultUrl: substring(each.value, length(byAddress), length(each.value) - length(byAddress) - 1)
            identity: identity.resource
          }
        : { name: each.name, value: each.value }
    )
    disableIngress: true
    activeRevisionsMode: 'Single'
    terminationGracePeriodSeconds: 30 // above the worker's own --grace of 25
    workloadProfileName: 'Consumption'
    containers: [
      {
        name: 'worker'
        image: image
        resources: { cpu: json('1.0'), memory: '2Gi' }
        env: map(ownSettings, each => { name: each.key, secretRef: each.name })
        probes: [
          { type: 'Startup', httpGet: health, periodSeconds: 20, timeoutSeconds: 5, failureThreshold: 10 }
          { type: 'Liveness', httpGet: health, periodSeconds: 30, timeoutSeconds: 5, failureThreshold: 3 }
        ]
      }
    ]
    scaleSettings: {
      minReplicas: min(replicas.always, partitions)
      maxReplicas: most
      rules: [{ name: 'processor', custom: { type: 'cpu', metadata: { type: 'Utilization', value: '70' } } }]
    }
  }
  dependsOn: [pull]
}
