"""Configurations, quotas, credentials and the cluster itself."""

from __future__ import annotations

from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
)
from odradek.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from odradek.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from odradek.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from odradek.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.authorization.case import (
    ALL,
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Case,
)
from support.authorization.requests import (
    EVERYTHING,
    QUOTA,
    alter_configs,
    describe_configs,
    fixed,
    old_alter_configs,
)

CASES = [
    # Configurations
    Case("describe configurations without rights", [], fixed(describe_configs(*EVERYTHING)), 4),
    Case(
        "describe the configuration of a topic",
        ["DESCRIBE_CONFIGS TOPIC open", "DESCRIBE_CONFIGS TOPIC gone"],
        fixed(describe_configs(*EVERYTHING)),
        4,
    ),
    Case(
        "describe the configuration of a group and client metrics",
        ["DESCRIBE_CONFIGS GROUP club", "ALTER_CONFIGS CLUSTER"],
        fixed(describe_configs((GROUP, "club"), (CLIENT_METRICS, "m"), (GROUP, "gone"))),
        4,
        masked=("documentation",),
    ),
    Case("describe an unknown type", [], fixed(describe_configs((TOPIC, "shut"), (99, "x"))), 4),
    Case("alter configurations without rights", [], fixed(alter_configs(*EVERYTHING)), 1, unordered=True),
    Case(
        "alter the configuration of a topic",
        ["ALTER_CONFIGS TOPIC open", "ALTER_CONFIGS TOPIC gone"],
        fixed(alter_configs(*EVERYTHING)),
        1,
        unordered=True,
    ),
    Case(
        "alter configurations twice without rights",
        [],
        fixed(alter_configs((TOPIC, "shut"), (TOPIC, "shut"), (TOPIC, "open"))),
        1,
        unordered=True,
    ),
    Case(
        "alter configurations of an unknown type",
        [],
        fixed(alter_configs((TOPIC, "shut"), (99, "x"))),
        1,
        unordered=True,
    ),
    Case(
        "replace configurations without rights",
        [],
        fixed(old_alter_configs((TOPIC, "shut"), (TOPIC, "gone"), (BROKER, "1"), (GROUP, "club"))),
        2,
        unordered=True,
    ),
    Case("list resources without rights", ["DESCRIBE CLUSTER"], fixed(ListConfigResourcesRequest()), 1),
    Case("list client metrics without rights", [], fixed(ListConfigResourcesRequest()), 0),
    # The cluster
    Case(
        "move replicas without rights",
        [],
        fixed(
            AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path="/nowhere",
                        topics=[AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in ALL],
                    )
                ]
            )
        ),
        2,
        unordered=True,
    ),
    *(
        Case(
            f"describe log directories without rights, version {version}",
            [],
            fixed(DescribeLogDirsRequest(topics=None)),
            version,
        )
        for version in (1, 4)
    ),
    *(
        Case(
            f"elect leaders {label}without rights",
            [],
            fixed(
                ElectLeadersRequest(
                    topic_partitions=[TopicPartitions(topic=name, partitions=[0, 9]) for name in ALL]
                    if named
                    else None
                )
            ),
            2,
            unordered=True,
        )
        for label, named in (("", True), ("everywhere ", False))
    ),
    Case(
        "reassign partitions without rights",
        [],
        fixed(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name=name, partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
                    )
                    for name in ALL
                ]
            )
        ),
        0,
        unordered=True,
    ),
    Case("list reassignments without rights", [], fixed(ListPartitionReassignmentsRequest()), 0),
    Case(
        "describe quotas without rights",
        [],
        fixed(
            DescribeClientQuotasRequest(
                components=[ComponentData(entity_type="user", match_type=2, match=None)]
            )
        ),
        1,
    ),
    Case("alter quotas without rights", [], fixed(AlterClientQuotasRequest(entries=[QUOTA])), 1),
    Case(
        "describe credentials without rights",
        [],
        fixed(DescribeUserScramCredentialsRequest(users=[UserName(name="a"), UserName(name="b")])),
        0,
    ),
    Case(
        "alter credentials without rights",
        [],
        fixed(
            AlterUserScramCredentialsRequest(
                deletions=[ScramCredentialDeletion(name="a", mechanism=1)],
                upsertions=[
                    ScramCredentialUpsertion(
                        name="b", mechanism=1, iterations=4096, salt=b"12345678", salted_password=b"1" * 32
                    )
                ],
            )
        ),
        0,
        unordered=True,
    ),
    *(
        Case(
            f"describe the quorum without rights, version {version}",
            [],
            fixed(
                DescribeQuorumRequest(
                    topics=[
                        RequestTopicData(
                            topic_name="__cluster_metadata",
                            partitions=[RequestPartitionData(partition_index=0)],
                        )
                    ]
                )
            ),
            version,
        )
        for version in (0, 2)
    ),
    Case(
        "update features without rights",
        [],
        fixed(
            UpdateFeaturesRequest(
                feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)],
                validate_only=True,
            )
        ),
        1,
    ),
]
