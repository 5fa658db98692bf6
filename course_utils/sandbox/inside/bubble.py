"""The bubblewrap side of the sandbox: gives up what is left to give up, then runs programs.

One JSON object per line, as in worker.mjs. Namespaces were set up by `sandbox/bubblewrap.py`:
no network, no process but this one, a small read-only file system. Here follow the limits of
memory and files, and a filter that refuses the system calls that would make more processes.
"""

import ctypes
import json
import os
import platform
import random
import resource
import struct
import sys

MEGABYTE = 1024 * 1024
FILE_BYTES = 16 * MEGABYTE
# Numbers of fork, vfork, clone, clone3, execve, execveat, socket, socketpair, memfd_create,
# shmget, msgget, semget, ptrace, bpf, io_uring_setup, unshare, keyctl, add_key (the memory behind
# most of them is not counted as this process's), with the name of the processor
# in audit.h (https://github.com/torvalds/linux, include/uapi/linux/audit.h).
REFUSED = {
    "x86_64": (
        0xC000003E,
        [57, 58, 56, 435, 59, 322, 41, 53, 319, 29, 68, 64, 101, 321, 425, 272, 250, 248],
    ),
    "aarch64": (
        0xC00000B7,
        [220, 435, 221, 281, 198, 199, 279, 194, 186, 190, 117, 280, 425, 97, 219, 217],
    ),
}


def filter_program():
    """The filter in the kernel's form: 8 bytes an instruction (man 2 seccomp)."""
    processor, numbers = REFUSED[platform.machine()]
    load, if_equal, if_at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # 1 is EPERM
    steps = [(load, 0, 0, 4), (if_equal, 1, 0, processor), (give, 0, 0, kill), (load, 0, 0, 0)]
    steps += [(if_at_least, len(numbers) + 1, 0, 0x40000000)]  # a second numbering of x86
    for index, number in enumerate(numbers):
        steps.append((if_equal, len(numbers) - index, 0, number))
    steps += [(give, 0, 0, allow), (give, 0, 0, refuse)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def give_up(memory_mb):
    """Set every limit; none can be raised again."""
    for what, most in {
        resource.RLIMIT_AS: memory_mb * MEGABYTE,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }.items():
        resource.setrlimit(what, (most, most))
    code = ctypes.create_string_buffer(filter_program())
    program = struct.pack("HxxxxxxP", (len(code) - 1) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, filter_mode = 38, 22, 2
    for arguments in [(no_new_privileges, 1, 0, 0, 0), (set_filter, filter_mode, program, 0, 0)]:
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "the kernel refused the filter of system calls")


def main():
    requests, messages = os.fdopen(os.dup(0), "rb"), os.dup(1)
    setup = json.loads(requests.readline())
    give_up(setup["memory_mb"])
    dumps = json.dumps  # a program can replace what it finds in modules
    left = 0

    def send(message):
        data = dumps({"word": setup["word"]} | message).encode() + b"\n"
        while data:
            data = data[os.write(messages, data) :]

    def emit(text):
        nonlocal left
        if left > 0 and text:
            send({"print": text[:left]})
            left -= len(text)
            if left <= 0:
                send({"full": True})

    def ask(call):
        send({"call": call})
        return requests.readline().decode()

    stray, own = os.pipe()  # what is written to descriptors 1 and 2 is a print as well
    os.set_blocking(stray, False)
    os.set_blocking(own, False)
    os.dup2(own, 1)
    os.dup2(own, 2)
    os.close(0)
    runner = compile(setup["runner"], "<runner>", "exec")
    first, state = {}, {}
    exec(runner, first)
    restore = first["keeper"]()
    random.seed(0)
    send({"ready": f"Python {platform.python_version()}"})
    while request := requests.readline().decode():
        left = setup["output_chars"]
        fresh = restore()
        exec(runner, fresh)
        try:
            result = fresh["run"](request, state, emit, ask, restore)
        except BaseException as error:  # not one of the program: the step itself is broken
            send({"broken": type(error).__name__})
            os._exit(1)
        try:
            emit(os.read(stray, 65536).decode("utf-8", "replace"))
        except BlockingIOError:
            pass  # nothing was written there
        send({"done": result})


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
