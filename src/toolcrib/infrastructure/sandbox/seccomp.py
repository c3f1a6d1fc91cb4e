"""The seccomp filter of a jail: denied system calls, as a classic BPF program.

Written without a library, 8 bytes per instruction, as `struct sock_filter` of <linux/filter.h>. The numbers are those
of <asm/unistd_64.h> and <asm-generic/unistd.h>. Newer system calls are denied as unknown.
"""

import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolcrib.contracts import Unavailable

Instruction: TypeAlias = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _EAGAIN, _ENOSYS, _EAFNOSUPPORT = 1, 11, 38, 97
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
"""Offsets in `struct seccomp_data`; the lower half of the first argument."""
_X32: Final = 0x40000000
_AF_UNIX: Final = 1
_NEW_NAMESPACES: Final = 0x7E020080
"""CLONE_NEW* of clone(2)."""
_THREAD: Final = 0x10000
_FIRST_UNIFIED: Final = 424
"""From here on the numbers are the same everywhere."""
_UNIFIED: Final = (436, 437, 439, 441, 449)
"""close_range, openat2, faccessat2, epoll_pwait2, futex_waitv. Not clone3, whose flags a filter cannot see."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The numbers of one processor family."""

    audit: int
    """AUDIT_ARCH_* of <linux/audit.h>."""
    socket: int
    clone: int
    forks: Sequence[int]
    denied: Sequence[int]


_DENIED: Final[Mapping[str, tuple[int, int | None]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "memfd_create": (319, 279),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
"""Numbers on x86_64 and aarch64: what reaches into the kernel, other processes, time, or memory that nobody counts."""
MACHINES: Final = {
    "x86_64": Machine(
        0xC000003E, socket=41, clone=56, forks=(57, 58), denied=tuple(first for first, _ in _DENIED.values())
    ),
    "aarch64": Machine(
        0xC00000B7,
        socket=198,
        clone=220,
        forks=(),
        denied=tuple(second for _, second in _DENIED.values() if second is not None),
    ),
}


def seccomp_program(*, single: bool, machine: str | None = None) -> bytes:
    """The filter.

    Args:
        single: Whether the code may have threads but no other process, because nobody counts its processes' memory.
        machine: Processor family; this one if null.

    Raises:
        Unavailable: The numbers of this processor's system calls are not known here.
    """
    name = machine or platform.machine()
    if name not in MACHINES:
        raise Unavailable(f"jails are not supported on {name!r} processors, only on {', '.join(MACHINES)}")
    return b"".join(struct.pack("<HBBI", *item) for item in _instructions(MACHINES[name], single=single))


def _instructions(machine: Machine, *, single: bool) -> Iterator[Instruction]:
    yield from ((_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, _KILL))
    yield (_LOAD, 0, 0, _NUMBER)
    yield from ((_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL))
    for number in (*machine.denied, *(machine.forks if single else ())):
        yield from _when(number, _ERRNO | _EPERM)
    yield from (
        (_EQUAL, 0, 4, machine.socket),
        (_LOAD, 0, 0, _ARGUMENT),
        (_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT),
    )
    yield from (
        (_EQUAL, 0, 6 if single else 4, machine.clone),
        (_LOAD, 0, 0, _ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    )
    if single:
        yield from ((_ANY_BIT, 1, 0, _THREAD), (_RETURN, 0, 0, _ERRNO | _EAGAIN))
    yield (_RETURN, 0, 0, _ALLOW)
    yield (_AT_LEAST, 1, 0, _FIRST_UNIFIED)
    yield (_RETURN, 0, 0, _ALLOW)
    for number in _UNIFIED:
        yield from _when(number, _ALLOW)
    yield (_RETURN, 0, 0, _ERRNO | _ENOSYS)


def _when(number: int, verdict: int) -> Iterator[Instruction]:
    yield from ((_EQUAL, 0, 1, number), (_RETURN, 0, 0, verdict))
