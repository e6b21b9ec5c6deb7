"""Validation of a MetricsData by protobuf's C parser, without an object per metric.

The schema is OpenTelemetry's with every repeated message field declared singular. Protobuf merges a singular
message field that occurs several times, so this parser refuses the bytes that the real one refuses, but takes
no memory for a million empty messages. The schema lives in a descriptor pool of its own.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

from odradek.otlp.metrics_data import parsed

REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED
SINGULAR: Final = FieldDescriptorProto.LABEL_OPTIONAL
MESSAGE: Final = FieldDescriptorProto.TYPE_MESSAGE


def singular_schema() -> type[Message]:
    """MetricsData as OpenTelemetry declares it, but with every repeated message singular."""
    pool = DescriptorPool()
    for module in (common_pb2, resource_pb2, metrics_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            make_singular(message)
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("opentelemetry.proto.metrics.v1.MetricsData"))


def make_singular(message: DescriptorProto) -> None:
    """Declare the repeated message fields of a message and of those nested in it singular."""
    for field in message.field:
        if field.label == REPEATED and field.type == MESSAGE:
            field.label = SINGULAR
    for nested in message.nested_type:
        make_singular(nested)


# Bound once: it runs for every push.
parse_validated: Final = singular_schema().FromString


def validate(data: bytes) -> None:
    """Read every field down to the last attribute.

    Raises:
        NotOtlp: The bytes are not MetricsData, or nested deeper than protobuf allows.
    """
    parsed(parse_validated, data)
