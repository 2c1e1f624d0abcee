#!/usr/bin/env python3
"""Keeps a copy of a shop's subscriptions, customers and orders in an SQLite file. It needs Python 3.9 and nothing else.

    SDS_KEY_FILE=key.txt python3 puller.py --url https://sds.example.com --database copy.db
    sqlite3 copy.db "SELECT json_extract(json, '$.email') FROM row WHERE resource = 'customers' LIMIT 5"

The first run reads all rows. Each later run reads only what changed since, so run it as often as you like, for instance
from cron. It can be stopped at any moment: the next run goes on where this one ended. Exit status: 0 the copy is
current, 1 it is not, and the message says why.

How it works, for your own program:

1. Every answer has a checkpoint in its header X-Checkpoint. Keep that of the FIRST page.
2. Follow page.nextCursor until it is null. A page can be empty and be followed by others.
3. From then on ask for ?since=CHECKPOINT, until nextCursor is null. Keep the newest checkpoint.
4. Save rows and checkpoint in one transaction. Rows replace each other by id, and are never deleted.
5. 400 bad_cursor for a checkpoint means that the server's database was restored from a backup: begin with 1 again.
"""

import argparse
import email.utils
import http.client
import json
import os
import random
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

RESOURCES = ("subscriptions", "customers", "orders")
TIMEOUT_S = 30  # of one attempt
DEADLINE_S = 120  # of a request with all its attempts

SCHEMA = """
CREATE TABLE IF NOT EXISTS row (
  resource TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (resource, id)
);
CREATE TABLE IF NOT EXISTS copy (resource TEXT PRIMARY KEY, checkpoint TEXT NOT NULL, cursor TEXT);
"""


class Refused(Exception):
    """The server refused a request, or did not answer it in time."""

    def __init__(self, message, code=""):
        super().__init__(message)
        self.code = code


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead the key to another host, so it is an error."""

    def redirect_request(self, *_):
        return None


class Api:
    def __init__(self, url, key):
        self.url = url.rstrip("/")
        self.headers = {"Authorization": "Bearer " + key, "Accept": "application/json", "Prefer": "handling=strict"}
        self.opener = urllib.request.build_opener(NoRedirect)

    def page(self, resource, **query):
        """One page. Returns its rows, its checkpoint, and the cursor of the next page or None."""
        url = "{}/api/v1/{}?{}".format(self.url, resource, urllib.parse.urlencode({"limit": 250, **query}))
        body, headers = self.get(url)
        return body["data"], headers["X-Checkpoint"], body["page"]["nextCursor"]

    def get(self, url):
        """Repeats what can succeed later: 429, 5xx and faults of the network. The waits grow, and are partly random."""
        ends_at = time.monotonic() + DEADLINE_S
        longest = 0.5
        while True:
            try:
                with self.opener.open(urllib.request.Request(url, headers=self.headers), timeout=TIMEOUT_S) as response:
                    return json.load(response), response.headers
            except urllib.error.HTTPError as error:
                refused, again = read_error(error), error.code == 429 or error.code >= 500
                wait = retry_after(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException, ValueError) as error:
                refused, again, wait = Refused("No whole answer: {}".format(error)), True, 0
            wait += random.random() * longest
            longest = min(longest * 2, 30)
            if not again or time.monotonic() + wait > ends_at:
                raise refused
            time.sleep(wait)


def read_error(error):
    try:
        body = json.load(error)["error"]
        return Refused(body["message"], body["code"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return Refused("The answer is HTTP {} and not from sds. Is the address right?".format(error.code))


def retry_after(text):
    """Seconds, from a number or a date (RFC 9110, 10.2.3)."""
    if text is None:
        return 0
    if text.isdecimal():
        return int(text)
    at = email.utils.parsedate_tz(text)
    return 0 if at is None else max(0, email.utils.mktime_tz(at) - time.time())


def update(api, db, resource):
    """Brings the copy of a resource up to date. Returns how many rows it saved."""

    def save(rows, checkpoint, cursor):
        with db:  # one transaction
            db.executemany(
                "REPLACE INTO row VALUES (?, ?, ?)",
                [(resource, row["id"], json.dumps(row, ensure_ascii=False)) for row in rows],
            )
            db.execute("REPLACE INTO copy VALUES (?, ?, ?)", (resource, checkpoint, cursor))
        return len(rows)

    saved = 0
    # cursor is where the walk through all rows goes on; None once it is finished.
    checkpoint, cursor = db.execute(
        "SELECT checkpoint, cursor FROM copy WHERE resource = ?", (resource,)
    ).fetchone() or (None, None)
    walks = checkpoint is None or cursor is not None
    while walks:
        rows, newest, cursor = api.page(resource, **({"cursor": cursor} if cursor else {}))
        checkpoint = checkpoint or newest  # that of the first page
        saved += save(rows, checkpoint, cursor)
        walks = cursor is not None
    more = True
    while more:
        rows, checkpoint, more = api.page(resource, since=checkpoint)
        saved += save(rows, checkpoint, None)
    return saved


def update_or_begin_anew(api, db, resource):
    try:
        return update(api, db, resource)
    except Refused as refused:
        known = db.execute("SELECT 1 FROM copy WHERE resource = ?", (resource,)).fetchone()
        if refused.code != "bad_cursor" or known is None:
            raise
    print("{}: the server does not know the checkpoint, so all rows are read anew".format(resource), file=sys.stderr)
    with db:
        db.execute("DELETE FROM row WHERE resource = ?", (resource,))
        db.execute("DELETE FROM copy WHERE resource = ?", (resource,))
    return update(api, db, resource)


def check_url(url):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")):
        return url
    raise Refused("--url must be https: everybody on the way could read the key")


def main():
    arguments = argparse.ArgumentParser(description="Keeps a copy of a shop's data in an SQLite file.")
    arguments.add_argument("--url", required=True, help="address of the server, such as https://sds.example.com")
    arguments.add_argument("--database", required=True, help="the file of the copy")
    arguments.add_argument("--resource", choices=RESOURCES, action="append", help="only this one; all by default")
    options = arguments.parse_args()
    try:
        # From a file: other users of the machine can see arguments.
        with open(os.environ["SDS_KEY_FILE"], encoding="ascii") as file:
            api = Api(check_url(options.url), file.read().strip())
        db = sqlite3.connect(options.database)
        db.executescript(SCHEMA)
        for resource in options.resource or RESOURCES:
            print("{}: {} rows saved".format(resource, update_or_begin_anew(api, db, resource)))
    except KeyError as missing:
        sys.exit("puller: set {} to a file with the API key".format(missing.args[0]))
    except (Refused, OSError, UnicodeError, sqlite3.Error) as error:
        sys.exit("puller: {}".format(error))


if __name__ == "__main__":
    main()
