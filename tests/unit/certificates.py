"""A certificate for this machine's own address, made anew for every run with the ``openssl`` command."""

import atexit
import functools
import os
import shutil
import ssl
import subprocess
import tempfile
from typing import Tuple


@functools.lru_cache(maxsize=None)
def certificate() -> "Tuple[str, str]":
    """The paths of a certificate that signs itself, and of its key."""
    folder = tempfile.mkdtemp(prefix="certificates-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    cert, key, config = (os.path.join(folder, name) for name in ("cert.pem", "key.pem", "config"))
    with open(config, "w") as file:
        file.write(
            "[req]\ndistinguished_name = name\nx509_extensions = extensions\nprompt = no\n"
            "[name]\nCN = localhost\n"
            "[extensions]\nsubjectAltName = DNS:localhost, IP:127.0.0.1\n"
            "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, digitalSignature, keyCertSign\n"
            "subjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n"
        )
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -sha256".split()
    made = subprocess.run(
        command + ["-config", config, "-keyout", key, "-out", cert],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    assert made.returncode == 0, made.stdout.decode("utf-8", "replace")
    return cert, key


def server_context() -> ssl.SSLContext:
    """What a server needs to speak TLS with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate())
    return context
