"""List prices in US dollars, looked up on 2026-11-23 in stored copies of public pages. No price is a bill.

Check them in the pricing calculator (azure.microsoft.com/pricing/calculator) for your region and agreement. `UNSEEN`
marks those that no stored copy had.
"""

EUROPE = 1.2  # a European region costs up to this factor more: logs are 2.30 in the US and 2.76 in West Europe
HOURS = 730  # of a month
SECONDS = HOURS * 3600
MONTH = SECONDS / 86_400  # days
MILLION = 1e6

# azure.microsoft.com/pricing/details/event-hubs. UNSEEN
UNIT_HOUR, MILLION_EVENTS, CAPTURE_UNIT_HOUR = 0.03, 0.028, 0.10

# azure.microsoft.com/pricing/details/functions, by modal.com/blog/azure-function-pricing-guide (2025-05); an execution
# costs a second at least (learn.microsoft.com/answers/a/12389275). The prices of always-ready instances are UNSEEN.
ON_DEMAND_GB_SECOND, MILLION_EXECUTIONS = 0.000026, 0.40
READY_GB_SECOND, READY_ACTIVE_GB_SECOND = 0.000004, 0.000016
FREE_GB_SECONDS, FREE_EXECUTIONS = 100_000, 250_000

# azure.microsoft.com/pricing/details/azure-sql-database, serverless General Purpose; compute is UNSEEN, and storage is
# by cal53.calculator.city/?p=139322.
VCORE_HOUR, SQL_GB = 0.5218, 0.115
PROVISIONED_VCORE_HOUR = 0.2522  # UNSEEN
S0_HOUR = 0.0202  # Standard S0, 10 DTU and 250 GB. UNSEEN

# azure.microsoft.com/pricing/details/monitor, by monitoringcost.com/azure-monitor-cost (2026): the first 5 GB of a
# month are free. Log alerts every five minutes are UNSEEN.
LOG_GB, FREE_LOG_GB, ALERT_RULE = 2.30, 5.0, 1.50

# azure.microsoft.com/pricing/details/storage/blobs, hot, LRS. A host checkpoint sets metadata, which is an operation
# of the kind `Other` (learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories). UNSEEN
LAKE_GB, TEN_THOUSAND_OPERATIONS = 0.0208, 0.0044

# azure.microsoft.com/pricing/details/private-link, by c3x.dev/resources/azure/azurerm_private_endpoint; a DNS zone is
# UNSEEN.
ENDPOINT_HOUR, DNS_ZONE = 0.01, 0.50

# azure.microsoft.com/pricing/details/container-apps, by c3x.dev/resources/azure/azurerm_container_app, without the free
# grant of a subscription; the price of an idle vCPU is UNSEEN.
VCPU_SECOND, IDLE_VCPU_SECOND, GIB_SECOND = 0.000024, 0.000003, 0.000003

# azure.microsoft.com/pricing/details/synapse-analytics, by c3x.dev/resources/azure/azurerm_synapse_workspace.
SPARK_VCORE_HOUR = 0.143
