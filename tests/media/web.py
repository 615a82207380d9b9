"""A test server on this machine, and a client for it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

from multimodal_eval.media.remote import fetch

BODY = b"some image"


def to_loopback(host, port):
    return ["127.0.0.1"]


def anything(address):
    return True


def get(url, *, max_bytes=1000, max_seconds=600.0, resolver=to_loopback, is_allowed=anything, tls=None):
    return fetch(url, max_bytes=max_bytes, max_seconds=max_seconds, resolver=resolver, is_allowed=is_allowed, tls=tls)


class Server:
    """Answers each connection with a function of the request's head and the socket, and records the heads."""

    def __init__(self, answer, context=None):
        self.answer, self.context, self.heads = answer, context, []
        self.is_open = True
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            if not self.is_open:
                connection.close()
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        try:
            with self.context.wrap_socket(connection, server_side=True) if self.context else connection as stream:
                head = b""
                while b"\r\n\r\n" not in head and (piece := stream.recv(4096)):
                    head += piece
                self.heads.append(head.decode())
                self.answer(head.decode(), stream)
        except OSError:
            connection.close()  # the client has closed the connection

    def close(self):
        """Closing the socket would not wake the thread, which could then accept connections of the next server."""
        self.is_open = False
        socket.create_connection(("127.0.0.1", self.port)).close()
        self.thread.join()
        self.socket.close()

    def url(self, path="/x.png", host="images.example", scheme="http"):
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def serving(answer, context=None):
    server = Server(answer, context)
    try:
        yield server
    finally:
        server.close()


def plain(head, stream):
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))


def saying(*pieces, pause=0.0):
    def answer(head, stream):
        for piece in pieces:
            stream.sendall(piece)
            time.sleep(pause)

    return answer
