"""Actions: the objects in a commit file, one at a time and as columns.

Source: PROTOCOL.md, "Actions".
"""

from lakelog.core.actions.objects import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    FileAction,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SidecarFile,
    UnknownAction,
    action_from_json,
)

__all__ = [
    "Action",
    "AddCDCFile",
    "AddFile",
    "CheckpointMetadata",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "FileAction",
    "Format",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
    "SidecarFile",
    "UnknownAction",
    "action_from_json",
]
