"""The nodes that tests attach to, and a link to one that can be cut.

`CLAWMESH_TCP`: addresses of two nodes of one mesh, with a comma between. `CLAWMESH_WS`, `CLAWMESH_SOCKET`: others
of the first one. `CLAWMESH_KEY`: a key of both. Without them the tests of this folder that need nodes are skipped.
"""

import os
import socket
import threading
import unittest

TCP = [it for it in os.environ.get("CLAWMESH_TCP", "").split(",") if it]
WEB_SOCKET = os.environ.get("CLAWMESH_WS", "")
SOCKET = os.environ.get("CLAWMESH_SOCKET", "")
KEY = os.environ.get("CLAWMESH_KEY", "")

needs_nodes = unittest.skipUnless(TCP, "no CLAWMESH_TCP: no nodes to attach to")


class Pipe:
    """A link to an address that can be cut."""

    def __init__(self, to):
        self._to = to.rsplit(":", 1)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                node = socket.create_connection((self._to[0], int(self._to[1])))
            except OSError:
                return
            self._ends += [client, node]
            for source, sink in ((client, node), (node, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source, sink):
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends all connections over it, and takes no other."""
        for end in [self._listener, *self._ends]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
