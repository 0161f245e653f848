"""What `sifr watch` shows on a terminal of its own: watch_reads.py SIFR CASE… Runs the program behind
a pty, and reads what it sends as a terminal would, as far as it uses one."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

SIFR = sys.argv[1]
# All that it may send: the other screen, the cursor, styles, and clearing.
ALLOWED = re.compile(r"\x1b\[(\?1049[hl]|\?25[hl]|2?J|K|H|[0-9;]*m)")


def fail(text):
    sys.exit("watch_reads.py: " + text)


class Watch:
    def __init__(self, run, columns=80, rows=24, options=(), **environment):
        values = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
        values.pop("NO_COLOR", None)
        values.update(environment)
        go, self.hold = os.pipe()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.read(go, 1)
            os.execve(SIFR, [SIFR, "watch", run, *options], values)
        self.before = termios.tcgetattr(self.terminal)
        self.resize(columns, rows)
        os.write(self.hold, b"x")
        self.sent = b""
        self.code = None

    def resize(self, columns, rows):
        self.size = columns, rows
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.05):
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                more = os.read(self.terminal, 1 << 16)
            except OSError:
                more = b""
            if not more:
                return False
            self.sent += more
        return True

    def lines(self):
        """The last picture that is whole."""
        pictures = re.findall(r"\x1b\[H((?:(?!\x1b\[H).)*?)\x1b\[J", self.sent.decode(), re.S)
        if not pictures:
            return []
        lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", pictures[-1]).replace("\r", "").split("\n")
        columns, rows = self.size
        if len(lines) > rows or any(len(line) >= columns for line in lines):
            return []  # of the size before
        return lines

    def until(self, *texts, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            alive = self.read()
            lines = self.lines()
            if all(any(text in line for line in lines) for text in texts):
                return lines
            if not alive:
                break
        fail(f"at {self.size} it never shows {texts}: {self.lines()} {self.sent[-400:]!r}")

    def ends(self, code, key=b"q", number=None):
        if number:
            os.kill(self.pid, number)
        else:
            os.write(self.terminal, key)
        end = time.monotonic() + 20
        while self.read() and time.monotonic() < end:
            pass
        status = os.waitpid(self.pid, 0)[1]
        got = os.waitstatus_to_exitcode(status)
        if got != code:
            fail(f"exit code {got}, not {code}: {self.sent[-300:]!r}")
        text = self.sent.decode()
        if not re.search(r"\x1b\[\?25h\x1b\[\?1049l[^\x1b]*$", text):
            fail(f"the screen is not given back: {text[-300:]!r}")
        if termios.tcgetattr(self.terminal) != self.before:
            fail("keys stay without echo")
        left = ALLOWED.sub("", text)
        if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", left):
            fail(f"it sends more than it should: {left!r}")
        os.close(self.terminal)
        return text


def figures(run):
    every = [json.loads(line) for line in open(run + "/metrics.jsonl")]
    last = {key: value for record in every for key, value in record.items()}
    low = min(r["loss"] for r in every if "loss" in r)
    return last, low


def sizes(run):
    last, low = figures(run)
    for columns, rows in ((40, 10), (80, 24), (200, 50)):
        w = Watch(run, columns, rows)
        want = [f"step {last['step']}/", f"loss {last['loss']:.4f}", f"Loss {last['loss']:.6g}"]
        if columns >= 80:
            want += [f"lr {last['learning_rate']:.3g}", f"norm {last['grad_norm']:.3g}", "done",
                     f"Loss of evaluations {last['eval_loss']:.6g}", f"{low:8.4g}",
                     f"step {last['step']}: evaluation: loss {last['eval_loss']:.4f}"]
        lines = w.until(*want)
        if not any("\u2801" <= c <= "\u28ff" for line in lines for c in line):
            fail(f"no curve: {lines}")
        if not lines[-1].startswith("q: end") or len(lines) != rows:
            fail(f"{len(lines)} lines of {rows}: {lines}")
        text = w.ends(0)
        if not re.search(rf"1049l{re.escape(run)}  step \d+/\d+  100 %  done.*\r\n$", text):
            fail(f"nothing stays: {text[-200:]!r}")


def resized(run):
    w = Watch(run, 40, 10)
    w.until("Loss ")
    w.resize(200, 50)
    if len(w.until("Norm of the gradient", "Tokens a second")) != 50:
        fail("it keeps its size")
    w.resize(60, 12)
    w.until("Loss ")
    w.ends(130, key=b"\x03")


def write(path, text, mode="a"):
    with open(path, mode) as f:
        f.write(text)


def growing(run):
    w = Watch(run)
    w.until("no such folder yet")
    os.mkdir(run)
    w.until("no record yet")
    log = run + "/metrics.jsonl"
    write(run + "/summary.json", '{"state": "running", "total_steps": 100}')
    paced = '"tokens":%d,"tokens_per_second":640,"seconds":%d}\n'
    write(log, '{"step":10,"loss":5.25,' + paced % (1280, 1) + '{"step":20,"loss":4.')
    w.until("step 10/100", "loss 5.2500", "running")
    write(log, '5,' + paced % (2560, 300))
    w.until("step 20/100", "loss 4.5000", "0:16 left")
    write(log, '{"step":1,"loss":7.5}\n', "w")
    w.until("step 1/100", "loss 7.5000", "lowest 7.5000 at 1")
    write(log + ".new", '{"step":2,"loss":6.5}\n')
    os.rename(log + ".new", log)
    w.until("step 2/100", "loss 6.5000")
    os.write(w.terminal, b"x\x1b[A")  # keys without a meaning
    write(run + "/next", '{"state": "failed", "total_steps": 100, "error": "a disk is full"}')
    os.rename(run + "/next", run + "/summary.json")
    w.until("failed: a disk is full")
    w.ends(143, number=signal.SIGTERM)


def hostile(run):
    name = run + "/\x1b]0;owned\x07\x1b[2J\u202e<b>"
    os.makedirs(name)
    write(name + "/metrics.jsonl", '{"step":1,"loss":2,"\x7fk\u009b2Jey":3,"\u061cx":1}\n'
                                   '{"step":2,"loss":null,"\x7fk\u009b2Jey":4}\n[]\n\x1b[5m\n')
    write(name + "/summary.json", json.dumps({"state": "failed", "error": "\x1b[31m\x07no\u009b"}))
    w = Watch(name, 200, 50)
    w.until("\\x1b[2J", "failed: \\x1b[31m\\x07no\\xc2\\x9b", "\\x7fk\\xc2\\x9b2Jey 4",
            "step 2: loss is not a finite number", "2 lines unreadable")
    w.ends(0)


def unread(run):
    """A terminal that nobody reads takes no more: the pictures do not go into it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        w = Watch(run, 500, 200)
        for i in range(4):
            time.sleep(0.3)
            w.resize(500 - i, 200 - i)
            os.kill(w.pid, signal.SIGWINCH)
        os.kill(w.pid, number)
        end = time.monotonic() + 20
        while not (gone := os.waitpid(w.pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(w.pid, signal.SIGKILL)
                fail(f"{number.name} does not end it, as nobody reads")
            time.sleep(0.05)
        if os.waitstatus_to_exitcode(gone[1]) != 128 + number:
            fail(f"{number.name}: unread, it ends with {os.waitstatus_to_exitcode(gone[1])}")
        os.close(w.terminal)


def paused(run):
    """Ctrl-Z gives the terminal back, also while its size changes; fg begins the screen anew."""
    w = Watch(run, 80, 24)
    w.until("Loss ")
    for columns, rows in ((200, 50), (60, 12)):
        os.write(w.terminal, b"\x1a")
        end = time.monotonic() + 20
        while not os.waitid(os.P_PID, w.pid, os.WSTOPPED | os.WNOHANG):
            if time.monotonic() > end:
                fail("Ctrl-Z does not stop it")
            w.read()
        w.read()
        text = w.sent.decode()
        if not text.endswith("\x1b[?25h\x1b[?1049l"):
            fail(f"stopped, the screen is not given back: {text[-300:]!r}")
        if termios.tcgetattr(w.terminal) != w.before:
            fail("stopped, keys stay without echo")
        w.resize(columns, rows)
        w.sent = b""
        os.kill(w.pid, signal.SIGCONT)
        if len(w.until("Loss ")) != rows:
            fail("fg: it has the size from before")
        if not w.sent.startswith(b"\x1b[?1049h\x1b[?25l"):
            fail(f"fg: the screen is not taken: {w.sent[:100]!r}")
    w.ends(0)


def plain(run):
    """No sequence where there is none to understand it, no style where none is wanted."""
    w = Watch(run, TERM="dumb")
    while w.read():
        pass
    if os.waitpid(w.pid, 0)[1] or b"\x1b" in w.sent or b"done" not in w.sent:
        fail(f"TERM=dumb: {w.sent!r}")
    w = Watch(run, NO_COLOR="1")
    w.until("Loss ")
    if re.search(r"\x1b\[[1-9][0-9]*m", w.ends(0)):
        fail("NO_COLOR: a style is sent")
    w = Watch(run, LC_ALL="C")
    w.until("Loss ")
    if not w.ends(0).isascii():
        fail("LC_ALL=C: braille is sent")
    w = Watch(run, 100, 30, ["--once"])
    while w.read():
        pass
    text = re.sub(r"\x1b\[[0-9;]*m", "", w.sent.decode())
    if os.waitpid(w.pid, 0)[1] or "\x1b" in text or "Loss " not in text or text.count("\n") > 29:
        fail(f"--once: {text!r}")


for case in sys.argv[2:]:
    name, _, run = case.partition("=")
    {"sizes": sizes, "resized": resized, "growing": growing, "hostile": hostile,
     "paused": paused, "plain": plain, "unread": unread}[name](run)
