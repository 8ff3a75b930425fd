"""Python's http.client against a server; see tests/support/foreign.lua.

Nothing here retries: http.client itself opens a new connection only after an
answer with Connection: close.
"""
import http.client
import json
import sys
import threading
import time
import urllib.parse


def connect(url):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)


def ask(conn, method, path, body=None):
    # A body of unknown length is sent in chunks.
    conn.request(method, path, body=body)
    answer = conn.getresponse()
    return answer, answer.read()


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {str(got)[:200]}, wanted {str(wanted)[:200]}")


def expect_continue(conn):
    """http.client cannot wait for 100 by itself."""
    conn.putrequest("POST", "/upload")
    conn.putheader("Content-Length", "5")
    conn.putheader("Expect", "100-continue")
    conn.endheaders()
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += conn.sock.recv(1)
    expect("interim answer", head, b"HTTP/1.1 100 Continue\r\n\r\n")
    conn.send(b"hello")
    answer = conn.getresponse()
    expect("after 100", (answer.status, answer.read()), (200, b"hello"))


def basics(url):
    conn = connect(url)
    _, first = ask(conn, "GET", "/remote")
    large = bytes(range(256)) * 20000

    def pieces():
        for i in range(0, len(large), 100000):
            yield large[i:i + 100000]

    for _ in range(20):
        expect("GET", ask(conn, "GET", "/echo/a")[1], b"a")
        expect("POST", ask(conn, "POST", "/echo/b", b"body")[1], b"body")
        expect("404", ask(conn, "GET", "/nowhere")[0].status, 404)
        expect("405", ask(conn, "DELETE", "/echo/a")[0].status, 405)
        expect("204", ask(conn, "GET", "/nothing")[0].status, 204)
        expect("304", ask(conn, "GET", "/old")[0].status, 304)
        answer, body = ask(conn, "HEAD", "/big?n=1000000")
        expect("HEAD", (answer.status, body), (200, b""))
    for _ in range(2):
        expect("large GET", ask(conn, "GET", "/big?n=5000000")[1],
               b"0123456789" * 500000)
        expect("chunked GET", len(ask(conn, "GET", "/chunked")[1]), 1000)
        expect("large POST", ask(conn, "POST", "/upload", large)[1], large)
        answer, body = ask(conn, "POST", "/upload", pieces())
        expect("chunked POST", body, large)
        expect("encoding", answer.headers["X-Encoding"], "chunked")
        expect_continue(conn)
    expect("the same connection", ask(conn, "GET", "/remote")[1], first)
    answer, _ = ask(conn, "POST", "/small", large)
    expect("too large", (answer.status, answer.will_close), (413, True))
    conn.close()


def drain(url):
    counts = {"answered": 0, "posts": 0, "refused": 0, "errors": []}
    lock = threading.Lock()
    workers = 8
    begun = threading.Semaphore(0)

    def work(number):
        conn = connect(url)
        for n in range(100000):
            name = f"{number}-{n}"
            try:
                if n % 2 == 0:
                    answer, body = ask(conn, "GET", f"/echo/{name}?ms=5")
                else:
                    answer, body = ask(conn, "POST", f"/echo/{name}", name)
            except ConnectionRefusedError:
                with lock:
                    counts["refused"] += 1
                return
            except Exception as error:  # each is a finding
                with lock:
                    counts["errors"].append(f"{name}: {error!r}")
                return
            with lock:
                counts["answered"] += 1
                counts["posts"] += n % 2
                if answer.status != 200 or body != name.encode():
                    counts["errors"].append(f"{name}: {answer.status} {body}")
            if n == 3:
                begun.release()
            time.sleep(0.002)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire(timeout=10)
    print("under way", flush=True)
    for thread in threads:
        thread.join()
    print(json.dumps(counts))


{"basics": basics, "drain": drain}[sys.argv[1]](sys.argv[2])
