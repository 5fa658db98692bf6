"""Bars the network: with this folder on PYTHONPATH, Python reaches its own machine only.

The tests run so, kernels included, because nothing in the course may need a network.
"""

import errno
import ipaddress
import socket

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_sendto = socket.socket.sendto
_getaddrinfo = socket.getaddrinfo
_gethostbyname = socket.gethostbyname


def _is_local(host) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback or host == "0.0.0.0"
    except ValueError:
        return False


def _bar(host) -> None:
    if not _is_local(host):
        raise OSError(errno.ENETUNREACH, f"The network is barred in tests; asked for {host!r}")


def _bar_address(sock, address) -> None:
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        _bar(address[0])


def connect(sock, address):
    _bar_address(sock, address)
    return _connect(sock, address)


def connect_ex(sock, address):
    _bar_address(sock, address)
    return _connect_ex(sock, address)


def sendto(sock, data, *rest):
    _bar_address(sock, rest[-1])
    return _sendto(sock, data, *rest)


def getaddrinfo(host, *rest, **settings):
    _bar(host)
    return _getaddrinfo(host, *rest, **settings)


def gethostbyname(host):
    _bar(host)
    return _gethostbyname(host)


socket.socket.connect = connect
socket.socket.connect_ex = connect_ex
socket.socket.sendto = sendto
socket.getaddrinfo = getaddrinfo
socket.gethostbyname = gethostbyname
