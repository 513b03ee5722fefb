"""Serve a model over HTTP: an API under /v1, a page for browsers at /, its description at /docs.

It listens on this machine only, unless --host and --api-key-file open it to others. Several models are named, as in
a=FILE b=FILE, and chosen by path or header. Logs are lines of JSON on stderr. SIGTERM or Ctrl-C finishes what is
running and ends; SIGHUP reads the models again without dropping a request. See docs/serving.md.

Example: vitrail serve model.safetensors
Example: vitrail serve small=runs/small large=runs/large --port 8080
"""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vitrail.base.errors import InputError
from vitrail.base.printable import line
from vitrail.cli.engine_flags import EngineFlags, engine_keywords
from vitrail.cli.model_file import hints
from vitrail.cli.report import Device, Positional, Switch, flag, print_json
from vitrail.cli.say import say

INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Arguments(EngineFlags):
    """Flags of `vitrail serve`."""

    models: Annotated[tuple[str, ...], Positional, flag("[NAME=]MODEL [...]")]
    """Files or folders of weights, of any format; several have a name each, and the first one is the default."""
    host: Annotated[str, flag("ADDRESS")] = "127.0.0.1"
    """The address to listen on; one that other machines can reach needs --api-key-file."""
    port: int = 8000
    """The port to listen on; 0 takes any that is free."""
    workers: Annotated[int | None, flag("INT", "one for each core, divided by --threads")] = None
    """Processes that decode and compute."""
    threads: Annotated[int | None, flag("INT", "the cores, divided among the workers that have work")] = None
    """Threads of each worker."""
    batch: int = 4
    """The most images that go through a model at once."""
    batch_wait: Annotated[float, flag("MILLISECONDS")] = 4.0
    """How long a decoded image waits for others at most, when a worker is free."""
    max_queue: Annotated[int, flag("IMAGES")] = 64
    """The most images that are in the server at once; further ones are refused with 429."""
    max_wait: Annotated[float, flag("SECONDS")] = 1.0
    """How long a request may be expected to wait for its turn; further ones are refused with 429."""
    max_images: int = 16
    """The most images of one request."""
    max_body: Annotated[int, flag("MIB")] = 32
    """The largest body of a request, in MiB."""
    max_pixels: int = 50_000_000
    """The most pixels of one image."""
    timeout: Annotated[float, flag("SECONDS")] = 30.0
    """When a request is answered with 503; a request may ask for a shorter time."""
    grace: Annotated[float, flag("SECONDS")] = 20.0
    """How long running requests may take when the server is stopped."""
    api_key_file: Annotated[str | None, flag("FILE", "none")] = None
    """A file with keys, one on each line, of which requests must carry one."""
    cors: Annotated[tuple[str, ...], flag("ORIGIN [...]", "none")] = ()
    """Origins of web pages that may call the server, such as https://example.org."""
    labels: Annotated[str | None, flag("FILE", "the model's own")] = None
    """Names of the classes: a line for each, or a JSON list, in the order of the model's outputs."""
    text_embeddings: Annotated[str | None, flag("FILE.npz", "none")] = None
    """For CLIP models with their projection: the classes as embeddings and names of texts, made with the text tower."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    json: Switch = False
    """Print the address and the models as JSON, once requests are answered."""


def run(arguments: Arguments) -> int:
    """Serve until a signal ends it."""
    models = named_models(arguments.models)
    if arguments.pull:
        _pull(list(models.values()))

    from vitrail.verbs.serve import serve

    stopped: list[int] = []
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        server = serve(
            models,
            host=arguments.host,
            port=arguments.port,
            workers=arguments.workers,
            threads=arguments.threads,
            batch=arguments.batch,
            batch_wait=arguments.batch_wait,
            max_queue=arguments.max_queue,
            max_wait=arguments.max_wait,
            max_images=arguments.max_images,
            max_body=arguments.max_body,
            max_pixels=arguments.max_pixels,
            timeout=arguments.timeout,
            grace=arguments.grace,
            api_key_file=arguments.api_key_file,
            cors=arguments.cors,
            labels=arguments.labels,
            text_embeddings=arguments.text_embeddings,
            **engine_keywords(arguments),
            device=arguments.device,
            pickle=arguments.pickle,
            log=line,
            note=say,
            **hints(arguments),
        )

        def stop(number: int, _: object) -> None:
            stopped.append(number)
            server.stop_soon()
            if len(stopped) > 1:
                raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, lambda *_: server.reload_soon())
        if arguments.json:
            print_json({"url": server.url, "models": list(models)})
        say(f"serving {', '.join(models)} at {server.url}; Ctrl-C stops it.")
        while not server.wait(1.0):
            pass
    except _Terminated:
        return 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return INTERRUPTED if stopped[:1] == [signal.SIGINT] else 0


def named_models(words: tuple[str, ...]) -> dict[str, str]:
    """Return the models by name; one without a name gets that of its file."""
    from vitrail.verbs.serve import model_name

    if not words:
        raise InputError("no model is given; name a file or folder of weights, or several as NAME=MODEL.")
    models: dict[str, str] = {}
    for word in words:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)=(.+)", word)
        name, path = match.groups() if match and not Path(word).exists() else (model_name(word), word)
        if name in models:
            raise InputError(f"two models have the name {name!r}; name them, as in a=FILE b=FILE.")
        models[name] = path
    return models


class _Terminated(BaseException):
    """SIGTERM while models were being loaded."""


def _interrupt(*_: object) -> None:
    raise _Terminated


def _pull(names: list[str]) -> None:
    """Get published models that are not on this machine."""
    from vitrail.cli.progress import progress
    from vitrail.published.source import is_path
    from vitrail.verbs.pull import pull

    for name in names:
        if not is_path(name):
            pull(name, progress=progress, note=say)
