"""Refuses requests about ACLs, as brokers without an authorizer do (``AclApis.scala``)."""

from typing import Any, Final

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from harrow.live_cluster.wire.errors import error_code

_SECURITY_DISABLED: Final = "SECURITY_DISABLED"
_MESSAGE: Final = "No Authorizer is configured."
ACL_REQUESTS: Final = (CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest)


def refused_acls(request: Any, _: int) -> Any:
    """Return the answer to a request about ACLs, with an error for each of its parts."""
    kind = request.header.get_response_class()
    refusal = {"error_code": error_code(_SECURITY_DISABLED), "error_message": _MESSAGE}
    if request.API_KEY == CreateAclsRequest.API_KEY:
        return kind(results=[kind.AclCreationResult(**refusal) for _ in request.creations])
    if request.API_KEY == DeleteAclsRequest.API_KEY:
        result = kind.DeleteAclsFilterResult
        return kind(filter_results=[result(**refusal, matching_acls=[]) for _ in request.filters])
    return kind(**refusal, resources=[])
