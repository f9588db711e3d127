// The two consumer groups of an event hub, ours or that of somebody else: all that this file makes, and none that exists.

@description('Name of the namespace.')
param namespaceName string

@description('Names of the hub and of its consumer groups: of the trigger, which no other reader may use, and of the reader of gaps and replays.')
param names { hub: string, triggerGroup: string, readerGroup: string }

@description('True makes a group; false takes the one that exists.')
param makes { triggerGroup: bool, readerGroup: bool }

resource namespace 'Microsoft.EventHub/namespaces@2024-01-01' existing = {
  name: namespaceName
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2024-01-01' existing = {
  parent: namespace
  name: names.hub
}

resource trigger 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = if (makes.triggerGroup) {
  parent: hub
  name: names.triggerGroup
}

resource reader 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2024-01-01' = if (makes.readerGroup) {
  parent: hub
  name: names.readerGroup
}

@description('The hub as the target of a grant, which waits for its groups.')
output grantTarget string = '${namespaceName}/${hub.name}'
