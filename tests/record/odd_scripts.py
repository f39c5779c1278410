# ruff: noqa: E501
"""Scripts that do odd things around their launches; each runs plainly, and is recorded by one process and by several.

`run_plainly` is the oracle for what a script prints (lines that begin with `>`) and how it ends: its launches compile in
its own process for a GPU that is not there, and nothing is recorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.errors import RecordingError
from irscope.model.capture import Capture
from irscope.record.process.child import warm_children, warm_server
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.record.triton.patches import replaced, replaced_item

__all__ = ["SCRIPTS", "Outcome", "recorded", "run_plainly", "write"]

ROOT = Path(__file__).parents[2]

_PRELUDE = """
import asyncio, atexit, builtins, concurrent.futures, contextlib, errno, gc, glob, io, logging, multiprocessing, os
import queue, resource, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time, warnings

class NoTorch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch)
import triton
import triton.language as tl

if os.environ.get("ODD_PLAIN"):
    import contextlib as _contextlib
    from irscope.device.parts import part_of
    from irscope.record.triton.driver import install_driver
    from irscope.record.triton.patches import Patches
    _patches = Patches()
    install_driver(part_of("cuda:90"), "90", None, None, _patches)
    triton.knobs.cache.dir = os.environ["TRITON_CACHE_DIR"]

class Buffer:
    dtype = "fp32"
    def data_ptr(self):
        return 4096

@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

@triton.jit
def refused(x_ptr, BLOCK: tl.constexpr):
    value = tl.inline_asm_elementwise("no such instruction $0, $1;", "=r,r", [BLOCK], tl.int32, True, 1)
    tl.store(x_ptr, value.to(tl.float32))

@triton.jit
def unknown(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, nowhere)

def launch(block, kernel=fill, **options):
    return kernel[(1,)](Buffer(), BLOCK=block, **options)

def say(*words):
    os.write(1, ("> " + " ".join(map(str, words)) + "\\n").encode())

def fails(block=16):
    launch(block, refused)

launch(32)
launch(64)
"""
_LATER = "\nlaunch(128)\nsay('end')\n"

_BODIES: dict[str, str] = {
    # Threads, pools and event loops
    "thread": "t = threading.Thread(target=launch, args=(256,)); t.start(); t.join()",
    "two threads at once": """
gate = threading.Barrier(2)
def go(block):
    gate.wait(); launch(block)
ts = [threading.Thread(target=go, args=(b,)) for b in (256, 512)]
[t.start() for t in ts]; [t.join() for t in ts]""",
    "eight threads": """
ts = [threading.Thread(target=launch, args=(256 << n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]""",
    "thread pool": """
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    say([type(one).__name__ != 'x' for one in pool.map(launch, (256, 512, 1024))])""",
    "thread pool that fails": """
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    say(type(pool.submit(fails).exception()).__name__)""",
    "thread that fails": """
threading.excepthook = lambda args: say(args.exc_type.__name__)
t = threading.Thread(target=fails); t.start(); t.join()""",
    "asyncio": """
async def main():
    launch(256); await asyncio.sleep(0); launch(512)
asyncio.run(main())""",
    "asyncio.to_thread": """
async def main():
    await asyncio.gather(*(asyncio.to_thread(launch, b) for b in (256, 512, 1024)))
asyncio.run(main())""",
    "asyncio that fails": """
async def main():
    found = await asyncio.gather(asyncio.to_thread(fails), return_exceptions=True)
    say(type(found[0]).__name__)
asyncio.run(main())""",
    "timer": "t = threading.Timer(0.01, launch, (256,)); t.start(); t.join()",
    "daemon thread in the background": """
stop = threading.Event()
threading.Thread(target=stop.wait, daemon=True).start()
launch(256)""",
    "small stack": "threading.stack_size(1 << 20); t = threading.Thread(target=say, args=('x',)); t.start(); t.join()",
    # Signals and children
    "SIGCHLD ignored": """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.spawnlp(os.P_NOWAIT, 'true', 'true')
signal.signal(signal.SIGCHLD, signal.SIG_DFL)""",
    "SIGCHLD handled": """
seen = []
signal.signal(signal.SIGCHLD, lambda *_: seen.append(os.waitpid(-1, os.WNOHANG)[0]))
subprocess.run(['true'])
signal.signal(signal.SIGCHLD, signal.SIG_DFL)""",
    "waitpid(-1) without children": """
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    say('no child')""",
    "wait for a child": "pid = os.fork()\nif not pid: os._exit(7)\nsay(os.waitstatus_to_exitcode(os.wait()[1]))",
    "reap all": """
for code in (3, 4):
    if not os.fork(): os._exit(code)
found = []
while True:
    try: found.append(os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1]))
    except ChildProcessError: break
say(sorted(found))""",
    "children": "say(subprocess.run(['pgrep', '-P', str(os.getpid())], capture_output=True, text=True).stdout.count('\\n') <= 1)",
    "SIGALRM": """
signal.signal(signal.SIGALRM, lambda *_: say('alarm'))
signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)""",
    "interrupted every 5 ms": """
count = [0]
def tick(*_): count[0] += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
launch(256); launch(512)
signal.setitimer(signal.ITIMER_REAL, 0)
say(count[0] > 0)""",
    "SIGUSR1 to itself": """
signal.signal(signal.SIGUSR1, lambda *_: launch(256))
os.kill(os.getpid(), signal.SIGUSR1)""",
    "SIGINT handled": """
signal.signal(signal.SIGINT, lambda *_: say('handled'))
os.kill(os.getpid(), signal.SIGINT)""",
    "SIGTERM ignored": "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(os.getpid(), signal.SIGTERM)",
    "SIGPIPE default": "signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
    "signals blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); launch(256)",
    "SIGHUP": "os.kill(os.getpid(), signal.SIGHUP); time.sleep(2)",
    "a handler that launches within a launch": """
signal.signal(signal.SIGALRM, lambda *_: launch(512))
signal.setitimer(signal.ITIMER_REAL, 0.02)
launch(256); time.sleep(0.1)""",
    "handlers that launch, every 7 ms": """
signal.signal(signal.SIGALRM, lambda *_: launch(64))
signal.setitimer(signal.ITIMER_REAL, 0.007, 0.007)
launch(256); launch(512)
signal.setitimer(signal.ITIMER_REAL, 0)""",
    "session of its own": "say(os.getsid(0) == os.getpid() or True)",
    "forked child that launches": """
pid = os.fork()
if not pid:
    launch(256); os._exit(0)
say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))""",
    "forkpty": """
import pty
pid, fd = pty.fork()
if not pid: os._exit(5)
say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))""",
    "multiprocessing fork": """
context = multiprocessing.get_context('fork')
p = context.Process(target=launch, args=(256,)); p.start(); p.join(); say(p.exitcode)""",
    "double-forked daemon": """
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(0.5); os._exit(0)
    os._exit(0)
os.wait()""",
    "double-forked daemon that outlives the recording": """
if not os.fork():
    os.setsid()
    if not os.fork():
        os.closerange(0, 3); time.sleep(30); os._exit(0)
    os._exit(0)
os.wait()""",
    "daemon that keeps the streams": """
if not os.fork():
    os.setsid(); time.sleep(4); os._exit(0)""",
    "subprocess": "say(subprocess.run([sys.executable, '-S', '-c', 'print(3)'], capture_output=True, text=True).stdout.strip())",
    "system": "say(os.system('exit 3') >> 8)",
    # Descriptors and streams
    "closes all descriptors above 2": "os.closerange(3, 4096); launch(256)",
    "closes all descriptors": """
def say(*_): pass
os.closerange(0, 4096); launch(256)""",
    "opens files with the numbers that it closed": """
os.closerange(3, 4096)
files = [open(os.devnull, 'wb') for _ in range(40)]
launch(256)""",
    "few descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])); launch(256)",
    "stdout without flush": """
class Stream:
    def write(self, text): return len(text)
sys.stdout = sys.stderr = Stream(); launch(256)""",
    "stdout whose flush raises": """
class Stream(io.StringIO):
    def flush(self): raise OSError('no flush')
sys.stdout = Stream(); launch(256)
sys.stdout = sys.__stdout__""",
    "stdout is None": "sys.stdout = sys.stderr = None; launch(256)",
    "stdout closed": "sys.stdout.close(); launch(256)",
    "stdout redirected": """
with contextlib.redirect_stdout(io.StringIO()) as kept:
    print('hidden'); launch(256)
say(kept.getvalue().strip())""",
    "descriptor 1 redirected": """
saved = os.dup(1); null = os.open(os.devnull, os.O_WRONLY); os.dup2(null, 1)
launch(256)
os.dup2(saved, 1)""",
    "descriptor 2 redirected": "null = os.open(os.devnull, os.O_WRONLY); os.dup2(null, 2); launch(256)",
    "stdin": "say(repr(sys.stdin.read()), os.read(0, 1))",
    "descriptors are its own": "fd = os.open(os.devnull, os.O_RDONLY); say(fd < 32); os.close(fd)",
    "half a character": "os.write(1, '> ä'.encode()[:3]); time.sleep(0.3); os.write(1, 'ä\\n'.encode()[1:])",
    "binary output": "os.write(1, bytes(range(256)))",
    "much output": "[os.write(1, b'x' * 65536) for _ in range(64)]",
    # Ends
    "os._exit(0)": "os._exit(0)",
    "os._exit(3)": "os._exit(3)",
    "sys.exit()": "sys.exit()",
    "sys.exit(4)": "sys.exit(4)",
    "sys.exit(300)": "sys.exit(300)",
    "sys.exit('enough')": "sys.exit('enough')",
    "exception": "raise ValueError('odd')",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "exception without a text": "class Odd(Exception):\n    __str__ = __repr__ = lambda self: 1 / 0\nraise Odd",
    "exception group": "raise ValueError('odd') from KeyError('x')",
    "abort": "os.abort()",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "killpg SIGTERM": "os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None; os.killpg(0, signal.SIGTERM); time.sleep(5)",
    "killpg SIGKILL": "os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None; os.killpg(0, signal.SIGKILL)",
    "SIGABRT handled": "signal.signal(signal.SIGABRT, lambda *_: say('handled')); os.kill(os.getpid(), signal.SIGABRT)",
    "faulthandler": "import faulthandler; faulthandler.enable()",
    "exit in a thread": "t = threading.Thread(target=lambda: os._exit(6)); t.start(); t.join()",
    "launches in atexit": "atexit.register(launch, 256)",
    "thread that is not joined": "threading.Thread(target=lambda: (time.sleep(0.5), launch(256))).start()",
    "thread pool that is not shut down": "pool = concurrent.futures.ThreadPoolExecutor(1); pool.submit(launch, 256)",
    "a module of its folder in atexit": """
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, 'beside.py'), 'w') as file: file.write('value = 3')
sys.argv.append('more')
def at_end():
    import beside
    say(beside.value, sys.argv[1:], vars(sys.modules['__main__']) is globals())
atexit.register(at_end)""",
    "a module of its folder in a thread that is not joined": """
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, 'beside.py'), 'w') as file: file.write('value = 3')
def at_end():
    time.sleep(0.5)
    import beside
    launch(256); say(beside.value)
threading.Thread(target=at_end).start()""",
    "pickles in atexit": """
import pickle
class Own: pass
atexit.register(lambda: say(type(pickle.loads(pickle.dumps(Own()))) is Own))""",
    "what Python sets": """
names = sorted(name for name in globals() if name.startswith('__') and name not in ('__irscope__', '__annotations__', '__cached__'))
say(names, __name__, os.path.isabs(__file__), __spec__, __package__, type(__loader__).__name__)
say(sys.argv[0] == __file__, sys.path[0] == os.path.dirname(__file__), vars(sys.modules['__main__']) is globals())
say(threading.active_count(), threading.current_thread() is threading.main_thread(), sys._getframe().f_code.co_name)
say([signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP)])
say(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(signal.SIG_BLOCK, []))
say(sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold(), sys.gettrace(), sys.getprofile())""",
    "os._exit in atexit": "atexit.register(os._exit, 9)",
    "fails in atexit": "atexit.register(lambda: say('at exit'))",
    "launches in a finaliser": """
class Last:
    def __del__(self): launch(256)
last = Last(); del last; gc.collect()""",
    "recursion": """
def deep(n):
    if n: return deep(n - 1)
    launch(256)
deep(200)""",
    "execs": "os.execv('/bin/sh', ['sh', '-c', 'exit 5'])",
    # What a launch raises
    "caught": "try: fails()\nexcept Exception as error: say(type(error).__name__)",
    "caught in a caller": """
def calls(): fails()
def outer():
    try: calls()
    except Exception as error: say(type(error).__name__)
outer()""",
    "suppressed": "with contextlib.suppress(Exception): fails(); say('not here')",
    "swallowed by a class": """
class Swallows:
    def __enter__(self): return self
    def __exit__(self, *_): say('swallowed'); return True
with Swallows(): fails(); say('not here')""",
    "swallowed by a manager with a harmless name": """
class closing:
    def __enter__(self): return self
    def __exit__(self, *_): return True
nullcontext = closing
with nullcontext(): fails(); say('not here')""",
    "swallowed by a generator": """
@contextlib.contextmanager
def manager():
    try: yield
    except Exception: say('swallowed')
with manager(): fails(); say('not here')""",
    "swallowed by an exit stack": """
with contextlib.ExitStack() as stack:
    stack.enter_context(contextlib.suppress(Exception))
    fails(); say('not here')""",
    "swallowed through a variable": "made = contextlib.suppress(Exception)\nwith made: fails(); say('not here')",
    "harmless with": "with open(os.devnull), threading.Lock(): launch(256)",
    "finally": "try: launch(256)\nfinally: say('finally')",
    "not caught": "fails()",
    "not caught, then more": "fails(); say('not here'); launch(256)",
    "not caught in a function": "def calls(): fails()\ncalls()",
    "finally around what fails": "try: fails()\nfinally: say('finally')",
    "front end": "try: launch(8, unknown)\nexcept Exception as error: say(type(error).__name__)",
    "front end, not caught": "launch(8, unknown)",
    "excepthook": "sys.excepthook = lambda kind, *_: say(kind.__name__)",
    "too much shared memory": """
@triton.jit
def large(x_ptr, BLOCK: tl.constexpr):
    a = tl.load(x_ptr + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(x_ptr + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], tl.trans(a))
try: launch(256, large, num_warps=8)
except Exception as error: say(type(error).__name__)""",
    "does not fit, not caught": "launch(64, num_warps=64); say('not here')",
    "does not fit, caught": "try: launch(64, num_warps=64)\nexcept Exception as error: say(type(error).__name__)",
    # What it reads of kernels
    "reads a kernel": "kernel = launch(256); say(kernel.n_regs >= 0, sorted(kernel.asm))",
    "reads kernels later": "kernels = [launch(256 << n) for n in range(3)]; say([k.metadata.num_warps for k in kernels])",
    "the same launch again": "launch(64); launch(64); launch(256); launch(256)",
    "warmup": "say(fill.warmup(Buffer(), BLOCK=256, grid=(1,)).metadata.num_warps)",
    "autotuned": """
@triton.autotune([triton.Config({'BLOCK': 64}, num_warps=w) for w in (64, 1, 2)], key=[])
@triton.jit
def tuned(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
tuned[(1,)](Buffer()); say(tuned.best_config.num_warps)""",
    # Monkeypatches and settings
    "patched stage": """
from triton.backends.nvidia.compiler import CUDABackend
real = CUDABackend.make_ptx
def patched(*given):
    say('patched'); return real(*given)
CUDABackend.make_ptx = patched; launch(256)""",
    "patched os functions": "os.fork = os.waitpid = os.write = None\ndef say(*_): pass\nlaunch(256)",
    "patched time": "time.monotonic = time.perf_counter = time.time = lambda: 0.0; launch(256)",
    "patched open": """
real = builtins.open
def patched(*given, **more):
    return real(*given, **more)
builtins.open = patched; launch(256)""",
    "patched json and struct": "import json, struct; json.dumps = lambda *_, **__: '{}'; launch.__doc__ = ''",
    "knob": "triton.knobs.compilation.disable_line_info = True; launch(256)",
    "variable": "os.environ['TRITON_DISABLE_LINE_INFO'] = '1'; launch(256); del os.environ['TRITON_DISABLE_LINE_INFO']",
    "a hook of Triton's": "triton.knobs.runtime.jit_post_compile_hook = lambda **_: say('hook'); launch(256)",
    "os.environ.clear()": "os.environ.clear(); launch(256)",
    "removes irscope-* from TMPDIR": """
[shutil.rmtree(one, ignore_errors=True) for one in glob.glob(tempfile.gettempdir() + '/irscope-*')]
[shutil.rmtree(one, ignore_errors=True) for one in glob.glob(os.environ.get('TMPDIR', '/tmp') + '/irscope-*')]
launch(256)""",
    "changes its folder": "os.chdir('/'); launch(256)",
    "in a folder that is gone": "folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder); launch(256)",
    "umask": "os.umask(0o777); os.umask(0o022)",
    "warnings are errors": "warnings.simplefilter('error'); launch(256)",
    "no garbage collection": "gc.disable(); launch(256); gc.enable()",
    "profiler": "sys.setprofile(lambda *_: None); launch(256); sys.setprofile(None)",
    "tracer": "sys.settrace(lambda *_: None); launch(256); sys.settrace(None)",
    "logging": "logging.basicConfig(level=logging.DEBUG); launch(256)",
    "low recursion limit": "sys.setrecursionlimit(400); launch(256)",
    "argv replaced": "sys.argv = []; launch(256)",
    "without __main__": "del sys.modules['__main__']; launch(256)",
    "argv and modules": "sys.argv[:] = []; sys.path.clear(); launch(256)",
    "no modules": "[sys.modules.pop(n) for n in [*sys.modules] if n.startswith('irscope.analysis')]; launch(256)",
    # Limits
    "memory is short": """
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
try: bytearray(1 << 40)
except MemoryError: say('no memory')
launch(256)""",
    "a stage has no memory": """
from triton.backends.nvidia.compiler import CUDABackend
real = CUDABackend.make_ptx
def patched(*given): raise MemoryError
CUDABackend.make_ptx = patched
try: launch(256)
except MemoryError as error: say(type(error).__name__)
CUDABackend.make_ptx = real""",
    "a stage has no disk": """
from triton.backends.nvidia.compiler import CUDABackend
real = CUDABackend.make_cubin
def patched(*given): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
CUDABackend.make_cubin = patched
try: launch(256)
except OSError as error: say(error.errno == errno.ENOSPC)
CUDABackend.make_cubin = real""",
    "files of 0 bytes": """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); launch(256)""",
    "imports of irscope raise": """
class Refuses:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith('irscope'): raise RuntimeError(name)
sys.meta_path.insert(0, Refuses); launch(256)""",
    "processes and connections are refused": """
def refuse(event, _):
    if event in ('os.fork', 'subprocess.Popen', 'os.posix_spawn', 'socket.connect'): raise RuntimeError(event)
sys.addaudithook(refuse); launch(256)""",
    "no processes": "say(resource.getrlimit(resource.RLIMIT_NPROC) is not None); launch(256)",
}
SCRIPTS: dict[str, str] = {name: f"{_PRELUDE}{body}{_LATER}" for name, body in _BODIES.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    said: tuple[str, ...]
    code: int
    """A signal as a negative number."""
    compiled: int
    """How many compiles succeeded, in all of its processes."""
    captures: tuple[Capture, ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """What a recording left among the temporary files."""


def write(name: str, folder: Path) -> Path:
    """The script of a name as a file, and a home for it."""
    path = folder / "odd.py"
    path.write_text(SCRIPTS[name], "utf-8")
    return path


def run_plainly(path: Path) -> Outcome:
    """Run a script without recording it."""
    environment = {
        **os.environ,
        "ODD_PLAIN": "1",
        "PYTHONPATH": str(ROOT),
        "TRITON_CACHE_DIR": str(path.parent / "cache"),
        "TMPDIR": str(path.parent),
    }
    with (path.parent / "printed").open("w+b") as printed:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            env=environment,
            check=False,
            start_new_session=True,
            timeout=120,
        )
        printed.seek(0)
        # A shell tells of an interruption so.
        code = 128 + signal.SIGINT if done.returncode == -signal.SIGINT else done.returncode
        compiled = len(list((path.parent / "cache").glob("*/__grp__*.json")))
        return Outcome(_said(printed.read().decode("utf-8", "replace")), code, compiled)


def recorded(path: Path, jobs: int) -> Outcome:
    """Record a script."""
    request = request_for(path, targets="cuda:90", jobs=jobs, config="all")
    (temporary := path.parent / f"tmp{jobs}").mkdir()
    try:
        with warm_children():
            # The folder of the process that others are forked from is not the recording's.
            warm_server()
            with replaced_item(os.environ, "TMPDIR", str(temporary)), replaced(tempfile, "tempdir", str(temporary)):
                recording = record_request(replace(request, disassemble=False, layouts=False))
    except RecordingError as error:
        return Outcome((str(error),), 0, 0)
    ends = recording.script_ends
    code = ends[0].code if ends else _code_of(" ".join(recording.notes) + _failures(recording.captures))
    # Threads that launch at the same time have no order.
    captures = tuple(sorted(map(comparable, recording.captures), key=lambda capture: capture.id))
    compiled = sum(1 for capture in captures if "cubin" in capture.stages)
    said, notes = _said(recording.output), recording.notes
    # It owns the files of its captures.
    del recording
    left = tuple(one.name for one in temporary.iterdir() if one.name.startswith("irscope"))
    return Outcome(said, code, compiled, captures, notes, left)


def comparable(capture: Capture) -> Capture:
    """A capture without times and temporary names."""
    failure = capture.failure and replace(capture.failure, message="", diagnostics="")
    return replace(
        capture,
        artifacts=tuple(replace(one, duration_us=None, processor_us=None) for one in capture.artifacts),
        snapshots=tuple(replace(one, duration_us=None) for one in capture.snapshots),
        environment=replace(capture.environment, date="", command="", origin=()),
        compile_us=None,
        failure=failure,
    )


def _said(output: str) -> tuple[str, ...]:
    return tuple(line for line in output.splitlines() if line.startswith("> "))


def _failures(captures: object) -> str:
    return " ".join(one.failure.message for one in captures if one.failure is not None)  # type: ignore[attr-defined]


def _code_of(text: str) -> int:
    """The exit code of a process that ended without a word, as the notes tell it."""
    for one in signal.Signals:
        if f"was ended by {one.name}" in text:
            return -one.value
    words = text.partition("exited with code ")[2].split()
    return int(words[0].rstrip(".")) if words else 0
