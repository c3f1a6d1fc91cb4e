"""Attacks of code on its sandbox, as programs that tell what they got hold of.

Each program's `main` returns a list of what worked: an empty list, a failure or a stop at a quota are good ends. What
is outside (`witness`) is looked at by the tests afterwards. The twenty of the first table are those against which the
ways to run code were chosen; the others are escapes that were published for interpreters in the same process.
"""

PROCESS = {
    "fork_bomb": """
import os, time
def main(**known):
    n = 0
    for _ in range(400):
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            time.sleep(5)
            os._exit(0)
        n += 1
    return ["forked %d" % n] if n > 40 else []
""",
    "thread_bomb": """
import threading, time
def main(**known):
    n = 0
    for _ in range(400):
        try:
            threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        except RuntimeError:
            break
        n += 1
    return ["started %d" % n] if n > 40 else []
""",
    "memory_of_many": """
import os, time
def main(**known):
    for _ in range(8):
        if os.fork() == 0:
            held = bytearray(b'x' * (40 * 2**20))
            time.sleep(3)
            os._exit(0)
    statuses = [os.wait()[1] for _ in range(8)]
    return ["eight times 40 MiB"] if not any(statuses) else []
""",
    "huge_allocation": "def main(**known):\n    return ['10 GB'] if len(b'x' * (10 * 10**9)) else []\n",
    "endless_loop": "def main(**known):\n    while True:\n        pass\n",
    "loops_in_many": """
import os
def main(**known):
    for _ in range(6):
        if os.fork() == 0:
            while True:
                pass
    while True:
        pass
""",
    "ignores_the_signal": """
import signal
def main(**known):
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass
""",
    "sleep": "import time\ndef main(**known):\n    time.sleep(60)\n    return ['slept']\n",
    "stdout_flood": "def main(**known):\n    while True:\n        print('x' * 4096)\n",
    "stderr_flood": "import os\ndef main(**known):\n    while True:\n        os.write(2, b'x' * 65536)\n",
    "frame_flood": """
import os
def main(**known):
    for fd in range(3, 64):
        try:
            while True:
                os.write(fd, b'\\xff' * 65536)
        except OSError:
            continue
    return []
""",
    "giant_frame": """
import os
def main(**known):
    for fd in range(3, 64):
        try:
            os.write(fd, b'\\x7f\\xff\\xff\\xff')
        except OSError:
            continue
    return []
""",
    "forged_end": """
import os, struct
def main(**known):
    text = b'{"kind": "exploded", "output": 1}'
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack('>I', len(text)) + text)
        except OSError:
            continue
    return []
""",
    "recursion": "def main(**known):\n    return main(**known)\n",
    "deep_output": """
def main(**known):
    value = []
    for _ in range(100000):
        value = [value]
    return value
""",
    "exit_in_silence": "import os\ndef main(**known):\n    os._exit(0)\n",
    "kills_itself": "import os\ndef main(**known):\n    os.kill(os.getpid(), 9)\n",
    "segfault": "import ctypes\ndef main(**known):\n    ctypes.string_at(0)\n",
    "message_that_attacks": """
class Bad(Exception):
    def __str__(self):
        raise SystemExit(0)
def main(**known):
    raise Bad()
""",
    "swallows_what_stops_it": """
def main(**known):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
""",
    "prints_whatever_is_raised": """
def main(**known):
    while True:
        try:
            print('x' * 4096)
        except BaseException:
            continue
""",
    "silent_streams": """
import os
def main(**known):
    for fd in range(64):
        try:
            os.close(fd)
        except OSError:
            continue
    while True:
        pass
""",
    "many_questions_at_once": """
import os, struct
def main(**known):
    text = b'{"kind": "asked", "function": "harm", "arguments": {}}'
    for fd in range(3, 64):
        try:
            for _ in range(500):
                os.write(fd, struct.pack('>I', len(text)) + text)
        except OSError:
            continue
    return []
""",
    "question_and_end_at_once": """
import os, struct, time
def main(**known):
    for fd in range(3, 64):
        try:
            for text in (b'{"kind": "asked", "function": "f", "arguments": {}}', b'{"kind": "returned", "output": []}'):
                os.write(fd, struct.pack('>I', len(text)) + text)
        except OSError:
            continue
    time.sleep(60)
""",
    "deep_frame": """
import os, struct
def main(**known):
    text = b'{"kind": "returned", "output": ' + b'[' * 20000 + b']' * 20000 + b'}'
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack('>I', len(text)) + text)
        except OSError:
            continue
    return []
""",
    "regular_expression": """
import re
def main(**known):
    return ['matched'] if re.match('(a+)+$', 'a' * 40 + 'b') else []
""",
}
"""On the quotas and on this process."""

OUTSIDE = {
    "tcp_to_the_host": """
import socket
def main(port, **known):
    try:
        socket.create_connection(('127.0.0.1', port), timeout=1)
    except OSError:
        return []
    return ['connected']
""",
    "metadata_service": """
import socket
def main(**known):
    try:
        socket.create_connection(('169.254.169.254', 80), timeout=1)
    except OSError:
        return []
    return ['connected']
""",
    "abstract_socket": """
import socket
def main(abstract, **known):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect('\\0' + abstract)
    except OSError:
        return []
    return ['connected']
""",
    "other_families": """
import socket
def main(**known):
    got = []
    for family in range(1, 46):
        if family == 1:
            continue
        for kind in (1, 2, 3):
            try:
                socket.socket(family, kind).close()
                got.append('%d/%d' % (family, kind))
            except OSError:
                pass
    return got
""",
    "name_look_up": """
import socket
def main(**known):
    try:
        return [socket.gethostbyname('localhost.example.com')]
    except OSError:
        return []
""",
    "read_password_file": """
def main(**known):
    got = []
    for path in ('/etc/passwd', '/etc/shadow', '/root/.bashrc', '/proc/1/root/etc/passwd', '/proc/self/root/etc/group'):
        try:
            open(path).read()
            got.append(path)
        except OSError:
            pass
    return got
""",
    "read_the_secret": """
def main(secret, **known):
    got = []
    for path in (secret, '/work/../' + secret, '/proc/self/cwd/..' + secret, '/proc/1/cwd' + secret):
        try:
            got.append(open(path).read())
        except OSError:
            pass
    return got
""",
    "environment": """
import os, glob
def main(**known):
    got = [name for name in os.environ if 'TOOLCRIB' in name or name in ('USER', 'PATH')]
    for path in glob.glob('/proc/[0-9]*/environ'):
        try:
            if b'HUNTER2' in open(path, 'rb').read():
                got.append(path)
        except OSError:
            pass
    return got
""",
    "write_outside": """
import os
def main(secret, **known):
    got = []
    for path in (secret, '/usr/lib/x', '/python/lib/x', '/etc/x', '/x', '/proc/sys/kernel/hostname', '/dev/x',
                 '/dev/shm/x', '/proc/sysrq-trigger', '/packages/x', '/proc/sys/kernel/core_pattern'):
        try:
            with open(path, 'w') as f:
                f.write('x')
            got.append(path)
        except OSError:
            pass
    return got
""",
    "disk_fill": """
def main(**known):
    n = 0
    try:
        for i in range(64):
            with open('/work/%d' % i, 'wb') as f:
                f.write(b'x' * 2**20)
            n += 1
    except OSError:
        pass
    return ['%d MiB' % n] if n > 16 else []
""",
    "descriptors": """
import os
def main(**known):
    n = 0
    try:
        while n < 2000:
            os.open('/dev/null', os.O_RDONLY)
            n += 1
    except OSError:
        pass
    return ['%d files' % n] if n > 70 else []
""",
    "signal_a_host_process": """
import os
def main(pid, **known):
    got = []
    for signal in (0, 15, 9):
        try:
            os.kill(pid, signal)
            got.append(signal)
        except OSError:
            pass
    return got
""",
    "leaked_descriptors": """
import os, stat
def main(**known):
    got = []
    for fd in range(3, 256):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue
        if not stat.S_ISFIFO(mode) and not stat.S_ISCHR(mode):
            got.append('%d: %o' % (fd, mode))
    return got
""",
    "other_descriptors": """
import os, glob
def main(secret, **known):
    got = []
    for path in glob.glob('/proc/[0-9]*/fd/*'):
        try:
            target = os.readlink(path)
        except OSError:
            continue
        if target.startswith('/') and not target.startswith('/dev/'):
            got.append(target)
    return got
""",
    "first_process": """
import os
def main(**known):
    if os.getpid() == 1:
        return []
    # its memory can be written, so it must be allowed nothing more
    lines = dict(line.split(':', 1) for line in open('/proc/1/status').read().splitlines() if ':' in line)
    got = [name for name in ('CapEff', 'CapPrm', 'CapBnd') if int(lines[name], 16)]
    got += [name for name, value in (('Seccomp', '2'), ('NoNewPrivs', '1')) if lines[name].strip() != value]
    return got + [space for space in ('user', 'mnt', 'net', 'pid', 'ipc', 'uts')
                  if os.readlink('/proc/1/ns/' + space) != os.readlink('/proc/self/ns/' + space)]
""",
    "calls_of_another_processor": """
import ctypes, mmap, os
def main(machine, **known):
    if machine != 'x86_64':
        return []
    # mov eax, 20 (getpid); int 0x80; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ['%d' % ctypes.CFUNCTYPE(ctypes.c_int)(address)()]
""",
    "descriptors_of_files_outside": """
import os, glob
def main(secret, **known):
    got = []
    for path in glob.glob('/proc/[0-9]*/fd/*') + glob.glob('/proc/[0-9]*/cwd') + glob.glob('/proc/[0-9]*/root'):
        try:
            got.append(open(path + secret).read())
        except OSError:
            pass
    return got
""",
    "symbolic_links": """
import os
def main(secret, **known):
    os.symlink(secret, '/work/link')
    os.symlink('/proc/1/root' + secret, '/work/other')
    got = []
    for path in ('/work/link', '/work/other'):
        try:
            got.append(open(path).read())
        except OSError:
            pass
    return got
""",
    "system_calls": """
import ctypes, os
CALLS = {'ptrace': (101, (16, 1, 0, 0)), 'mount': (165, (0, 0, 0, 0, 0)), 'unshare': (272, (0x10000000,)),
         'setns': (308, (0, 0)), 'bpf': (321, (0, 0, 0)), 'keyctl': (250, (0, -3, 1)), 'io_uring': (425, (8, 0)),
         'userfaultfd': (323, (0,)), 'perf': (298, (0, 0, -1, -1, 0)), 'pivot_root': (155, (0, 0)),
         'clone3': (435, (0, 0)), 'open_by_handle': (304, (0, 0, 0)), 'kexec': (246, (0, 0, 0, 0)),
         'memfd': (319, (b'x', 0)), 'pidfd_getfd': (438, (0, 0, 0)), 'move_mount': (429, (0, 0, 0, 0, 0)),
         'fsopen': (430, (b'ext4', 0)), 'init_module': (175, (0, 0, 0)), 'chroot': (161, (b'/work',)),
         'process_vm_readv': (310, (1, 0, 0, 0, 0, 0)), 'unknown': (470, (0, 0, 0)), 'shmget': (29, (0, 4096, 0o1600))}
def main(machine, **known):
    if machine != 'x86_64':
        return []
    libc = ctypes.CDLL(None, use_errno=True)
    got = []
    for name, (number, arguments) in CALLS.items():
        libc.syscall(number, *arguments)
        if ctypes.get_errno() not in (1, 38):
            got.append('%s: errno %d' % (name, ctypes.get_errno()))
    return got
""",
    "new_user_namespace": """
import ctypes, os
def main(machine, **known):
    if machine != 'x86_64':
        return []
    libc = ctypes.CDLL(None, use_errno=True)
    pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return ['a user namespace'] if pid > 0 else []
""",
    "capabilities": """
def main(**known):
    lines = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines() if ':' in line)
    got = [name for name in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb') if int(lines[name], 16)]
    return got + ([] if lines['NoNewPrivs'].strip() == '1' else ['new privileges'])
""",
    "become_root": """
import os
def main(**known):
    got = []
    for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.nice(-5)):
        try:
            act()
            got.append('became')
        except OSError:
            pass
    return got + (['root'] if os.getuid() == 0 else [])
""",
    "raise_the_quotas": """
import resource
def main(**known):
    got = []
    for name in ('RLIMIT_NOFILE', 'RLIMIT_CPU', 'RLIMIT_FSIZE', 'RLIMIT_AS', 'RLIMIT_CORE'):
        try:
            resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            got.append(name)
        except (OSError, ValueError):
            pass
    return got
""",
    "leave_the_group": """
import glob
def main(**known):
    got = []
    for path in glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True):
        try:
            open(path, 'w').write('0')
            got.append(path)
        except OSError:
            pass
    return got
""",
    "run_programs": """
import os, subprocess
def main(**known):
    got = []
    for program in ('/bin/sh', '/usr/bin/id', '/usr/bin/su', '/bin/mount', '/usr/bin/bwrap'):
        try:
            subprocess.run([program], stdin=subprocess.DEVNULL, timeout=1)
            got.append(program)
        except (OSError, subprocess.TimeoutExpired):
            pass
    return got
""",
    "devices": """
import os
def main(**known):
    known = set('null zero full random urandom tty fd stdin stdout stderr shm pts ptmx core'.split())
    return sorted(set(os.listdir('/dev')) - known)
""",
    "other_processes": """
import os
def main(**known):
    return [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) > 20]
""",
}
"""On the machine around; for a whole CPython."""
