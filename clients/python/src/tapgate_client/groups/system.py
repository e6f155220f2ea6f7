"""Operations on the nodes of the platform."""

from tapgate_client.declaration import M, OperationGroup, reads
from tapgate_client.schemas.nodes import EffectiveSettings, NodeList


class System(OperationGroup[M]):
    @reads("GET /api/v1/system/nodes")
    def get_nodes(self) -> NodeList:
        """Return the nodes that use the database, and the state of its replication."""

    @reads("GET /api/v1/system/settings")
    def get_settings(self) -> EffectiveSettings:
        """Return the settings of the node that responds, without secrets."""
