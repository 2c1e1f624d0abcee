#!/usr/bin/env python3
"""Receives the webhooks of sds and keeps them in an SQLite file. It needs Python 3.9 and nothing else.

    sds webhook secret > secret.txt
    SDS_WEBHOOK_SECRET_FILE=secret.txt python3 receiver.py --port 3000 --database events.db
    sds webhook set --url https://hooks.example.com/ --all-topics
    sds webhook test

It listens on this machine only. Put a reverse proxy with TLS before it: sds sends to https.

What a receiver has to do, and this one does:

1. Take the body as raw bytes, before anything parses it.
2. Check the signature in constant time, and answer 401 if it is wrong.
3. Refuse a signature that is older than five minutes: somebody could send again what they recorded.
4. Skip an event whose id is known: each can come more than once.
5. Keep the event, then answer with a 2xx within 10 seconds. Do the work afterwards.

After a rotation of the secret the file may have several secrets, one on each line.
"""

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 5 * 60
LARGEST_BODY = 1024 * 1024
SIGNATURES = 8  # more in one header are refused

SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
  id TEXT PRIMARY KEY, topic TEXT NOT NULL, created_at TEXT NOT NULL, shop TEXT NOT NULL, data TEXT NOT NULL
)
"""


def verify(secrets, body, headers, now):
    """Checks the headers of Standard Webhooks (standardwebhooks.com). Returns None, or why the delivery is refused."""
    message_id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if message_id is None or timestamp is None or signatures is None:
        return "a header of the signature is missing"
    signed = "{}.{}.".format(message_id, timestamp).encode("utf-8", "surrogateescape") + body
    # During a rotation there are several, with a space between two.
    given = [one.encode("utf-8", "surrogateescape") for one in signatures.split(" ")]
    expected = [b"v1," + base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)) for secret in secrets]
    if len(given) > SIGNATURES or not any(hmac.compare_digest(one, other) for one in given for other in expected):
        return "the signature is wrong"
    # The signature covers the timestamp, so it is a number.
    if abs(now - int(timestamp)) > TOLERANCE_S:
        return "the signature is too old, or this machine's clock is wrong"
    return None


def verify_service(secrets, body, headers):
    """The same with X-Service-Signature, which is over the body alone. Use one of the two."""
    given = (headers.get("X-Service-Signature") or "").encode("utf-8", "surrogateescape")
    expected = [b"sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode() for secret in secrets]
    return None if any(hmac.compare_digest(given, one) for one in expected) else "the signature is wrong"


def key_of(secret):
    """The key of Standard Webhooks: the bytes that the base64 behind whsec_ stands for."""
    return base64.b64decode(secret[len("whsec_") :], validate=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds for a sender who sends nothing
    secrets = ()
    database = ""

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self.answer(411)
        if int(length) > LARGEST_BODY:
            return self.answer(413)
        body = self.rfile.read(int(length))
        refused = verify(self.secrets, body, self.headers, time.time())
        if refused is not None:
            print("refused: {}".format(refused), file=sys.stderr)
            return self.answer(401)
        event = json.loads(body)
        try:
            is_new = self.keep(event)
        except sqlite3.Error as error:
            print("not kept: {}".format(error), file=sys.stderr)
            return self.answer(500)  # sds sends it again
        if is_new:
            is_test = self.headers.get("X-Service-Test") == "true"
            print("{}{} {}".format("test: " if is_test else "", event["topic"], event["id"]), flush=True)
        return self.answer(204)

    def keep(self, event):
        """Returns whether the event is new."""
        db = sqlite3.connect(self.database, timeout=5)
        try:
            with db:
                values = [event[key] for key in ("id", "topic", "created_at", "shop")] + [json.dumps(event["data"])]
                return db.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, ?)", values).rowcount == 1
        finally:
            db.close()

    def answer(self, status):
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """The default prints a line for each request."""


def main():
    arguments = argparse.ArgumentParser(description="Receives the webhooks of sds.")
    arguments.add_argument("--port", type=int, default=3000, help="on 127.0.0.1; 0 means any free port")
    arguments.add_argument("--database", required=True, help="the file of the events")
    options = arguments.parse_args()
    try:
        # From a file: other users of the machine can see arguments.
        with open(os.environ["SDS_WEBHOOK_SECRET_FILE"], encoding="ascii") as file:
            Receiver.secrets = file.read().split()
        if not Receiver.secrets or not all(one.startswith("whsec_") and key_of(one) for one in Receiver.secrets):
            sys.exit("receiver: the file has no signing secret, whsec_…")
        Receiver.database = options.database
        db = sqlite3.connect(options.database)
        db.execute(SCHEMA)
        db.close()
        server = ThreadingHTTPServer(("127.0.0.1", options.port), Receiver)
    except KeyError as missing:
        sys.exit("receiver: set {} to a file with the signing secret".format(missing.args[0]))
    except (OSError, UnicodeError, binascii.Error, sqlite3.Error) as error:
        sys.exit("receiver: {}".format(error))
    print("listening on http://127.0.0.1:{}".format(server.server_port), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
