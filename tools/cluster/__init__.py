"""A highly available installation on one machine, for trying out and testing failures.

Three etcd members, three PostgreSQL nodes under Patroni, Valkey, three gateway nodes, two messenger
nodes, and HAProxy in front of all of them. All processes listen on 127.0.0.1, and all data is in
one folder.
"""


class ClusterError(Exception):
    """The cluster cannot be started. The message is one line for the operator."""
