"""The address of a server, taken before anything is loaded."""

import socket

from vitrail.base.errors import ConfigError
from vitrail.serving.settings import ServeSettings


def bind(settings: ServeSettings) -> socket.socket:
    """Take the address, so that another program on it is noticed before models are loaded."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends small parts at once only on sockets that name TCP; on others the body of an answer waits for the
    # client to confirm the head, which takes 40 ms
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except (OSError, ValueError) as error:  # a name that cannot be one is the second
        bound.close()
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ConfigError(
            f"the address {settings.host}:{settings.port} cannot be used ({reason}); choose another `port` or `host`."
        ) from None
    return bound
