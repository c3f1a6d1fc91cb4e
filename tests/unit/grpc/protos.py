"""The services of these tests, as `protoc` would describe them: a CRM in proto3, and a file of proto2."""

from functools import cache

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from toolcrib.kinds.grpc.importer.descriptors import complete, pool_of

_SHOP = """
name: "crm/v1/deals.proto" package: "crm.v1" syntax: "proto3"
dependency: "google/protobuf/any.proto" dependency: "google/protobuf/duration.proto"
dependency: "google/protobuf/empty.proto" dependency: "google/protobuf/field_mask.proto"
dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/timestamp.proto"
dependency: "google/protobuf/wrappers.proto" dependency: "google/api/annotations.proto"
dependency: "google/api/field_behavior.proto"
enum_type { name: "Stage"
  value { name: "STAGE_UNSPECIFIED" number: 0 } value { name: "STAGE_OPEN" number: 1 }
  value { name: "STAGE_WON" number: 2 } }
message_type { name: "Team" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Deal"
  field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "display_name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "amount_cents" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "stage" number: 4 type: TYPE_ENUM type_name: ".crm.v1.Stage" label: LABEL_OPTIONAL }
  field { name: "closes_at" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  field { name: "reminder" number: 6 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
  field { name: "tags" number: 7 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "scores" number: 8 type: TYPE_MESSAGE type_name: ".crm.v1.Deal.ScoresEntry" label: LABEL_REPEATED }
  field { name: "user" number: 9 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "team" number: 10 type: TYPE_MESSAGE type_name: ".crm.v1.Team" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "note" number: 11 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1 }
  field { name: "document" number: 12 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "probability" number: 13 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "extra" number: 14 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL }
  field { name: "anything" number: 15 type: TYPE_MESSAGE type_name: ".google.protobuf.Value" label: LABEL_OPTIONAL }
  field { name: "mask" number: 16 type: TYPE_MESSAGE type_name: ".google.protobuf.FieldMask" label: LABEL_OPTIONAL }
  field { name: "nickname" number: 17 type: TYPE_MESSAGE type_name: ".google.protobuf.StringValue"
    label: LABEL_OPTIONAL }
  field { name: "parent" number: 18 type: TYPE_MESSAGE type_name: ".crm.v1.Deal" label: LABEL_OPTIONAL }
  field { name: "attachment" number: 19 type: TYPE_MESSAGE type_name: ".google.protobuf.Any" label: LABEL_OPTIONAL }
  field { name: "visits" number: 20 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "teams" number: 21 type: TYPE_MESSAGE type_name: ".crm.v1.Deal.TeamsEntry" label: LABEL_REPEATED }
  field { name: "created_by" number: 22 type: TYPE_STRING label: LABEL_OPTIONAL
    options { [google.api.field_behavior]: OUTPUT_ONLY } }
  nested_type { name: "ScoresEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL } }
  nested_type { name: "TeamsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".crm.v1.Team" label: LABEL_OPTIONAL } }
  oneof_decl { name: "owner" } oneof_decl { name: "_note" } }
message_type { name: "GetDealRequest"
  field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL
    options { [google.api.field_behavior]: REQUIRED } } }
message_type { name: "ListDealsRequest" field { name: "count" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
message_type { name: "FailRequest"
  field { name: "status" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "message" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
service { name: "DealService"
  method { name: "GetDeal" input_type: ".crm.v1.GetDealRequest" output_type: ".crm.v1.Deal"
    options { idempotency_level: NO_SIDE_EFFECTS } }
  method { name: "ListDeals" input_type: ".crm.v1.ListDealsRequest" output_type: ".crm.v1.Deal" server_streaming: true
    options { [google.api.http] { get: "/v1/deals" } } }
  method { name: "PutDeal" input_type: ".crm.v1.Deal" output_type: ".crm.v1.Deal"
    options { idempotency_level: IDEMPOTENT deprecated: true } }
  method { name: "Fail" input_type: ".crm.v1.FailRequest" output_type: ".crm.v1.Deal" }
  method { name: "Shout" input_type: ".google.protobuf.StringValue" output_type: ".google.protobuf.StringValue" }
  method { name: "Upload" input_type: ".crm.v1.Deal" output_type: ".google.protobuf.Empty" client_streaming: true }
  method { name: "Chat" input_type: ".crm.v1.Deal" output_type: ".crm.v1.Deal" client_streaming: true
    server_streaming: true } }
source_code_info {
  location { path: 4 path: 1 leading_comments: " A sale that\\n may happen.\\n" }
  location { path: 4 path: 1 path: 2 path: 2 trailing_comments: " In cents of the deal's currency." }
  location { path: 5 path: 0 path: 2 path: 2 leading_comments: " The customer has signed." }
  location { path: 6 path: 0 leading_comments: " Deals of the company." }
  location { path: 6 path: 0 path: 2 path: 0 leading_comments: " Reads one deal.\\n\\n With everything in it." } }
"""

_OLD = """
name: "old.proto" package: "old" syntax: "proto2"
enum_type { name: "Colour" value { name: "RED" number: 1 } value { name: "BLUE" number: 2 } }
message_type { name: "Order"
  field { name: "number" number: 1 type: TYPE_INT32 label: LABEL_REQUIRED }
  field { name: "colour" number: 2 type: TYPE_ENUM type_name: ".old.Colour" label: LABEL_OPTIONAL
    default_value: "BLUE" }
  field { name: "copies" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "3" }
  field { name: "line" number: 4 type: TYPE_GROUP type_name: ".old.Order.Line" label: LABEL_REPEATED }
  nested_type { name: "Line" field { name: "sku" number: 5 type: TYPE_STRING label: LABEL_REQUIRED } } }
service { name: "Orders" method { name: "Place" input_type: ".old.Order" output_type: ".old.Order" } }
"""


def parsed(text: str) -> FileDescriptorProto:
    """A file from the text format, with the JSON names that protoc adds."""
    return text_format.Parse(text, FileDescriptorProto())


@cache
def crm() -> FileDescriptorProto:
    """`crm.v1.DealService`."""
    return parsed(_SHOP)


@cache
def old() -> FileDescriptorProto:
    """`old.Orders`."""
    return parsed(_OLD)


@cache
def pool() -> DescriptorPool:
    """Both files."""
    return pool_of(complete([crm(), old()]).values())


def descriptor_set(*files: FileDescriptorProto) -> bytes:
    """Files as `protoc --descriptor_set_out --include_imports` writes them."""
    return FileDescriptorSet(file=complete(files).values()).SerializeToString()
