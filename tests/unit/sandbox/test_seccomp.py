"""The filter's program, run by an interpreter of classic BPF, for both processor families."""

import struct

import pytest

from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.sandbox.seccomp import MACHINES, Machine, seccomp_program

pytestmark = pytest.mark.requirement("sandbox.system_calls")

ALLOWED, KILLED, EPERM, EAGAIN, ENOSYS, EAFNOSUPPORT = 0x7FFF0000, 0x80000000, 0x50001, 0x5000B, 0x50026, 0x50061
WRITE = {"x86_64": 1, "aarch64": 64}


def verdict(program: bytes, machine: Machine, number: int, argument: int = 0) -> int:
    """What the filter says of a system call: the subset of classic BPF that it uses."""
    data = struct.pack("<IIQQ", number, machine.audit, 0, argument)
    code, place, value = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)], 0, 0
    while True:
        instruction, jump_true, jump_false, operand = code[place]
        match instruction:
            case 0x06:
                return operand
            case 0x20:
                (value,), holds = struct.unpack_from("<I", data, operand), None
            case 0x15:
                holds = value == operand
            case 0x35:
                holds = value >= operand
            case _:
                assert instruction == 0x45
                holds = bool(value & operand)
        place += 1 + (0 if holds is None else jump_true if holds else jump_false)


@pytest.fixture(params=MACHINES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_ordinary_calls_pass_and_those_that_reach_into_the_kernel_do_not(name: str):
    machine = MACHINES[name]
    program = seccomp_program(single=False, machine=name)

    assert verdict(program, machine, WRITE[name]) == ALLOWED
    assert {verdict(program, machine, number) for number in machine.denied} == {EPERM}


def test_calls_that_linux_has_got_since_are_unknown_but_for_a_few(name: str):
    machine = MACHINES[name]
    program = seccomp_program(single=False, machine=name)

    passed = [number for number in range(424, 600) if verdict(program, machine, number) == ALLOWED]
    assert passed == [436, 437, 439, 441, 449]
    assert verdict(program, machine, 435) == ENOSYS


def test_only_sockets_of_the_machine_itself_are_made(name: str):
    machine = MACHINES[name]
    program = seccomp_program(single=False, machine=name)

    assert verdict(program, machine, machine.socket, 1) == ALLOWED
    assert {verdict(program, machine, machine.socket, family) for family in (2, 10, 16, 17, 38, 40)} == {EAFNOSUPPORT}


def test_processes_and_threads_are_made_but_in_no_new_namespace(name: str):
    machine = MACHINES[name]
    program = seccomp_program(single=False, machine=name)

    assert verdict(program, machine, machine.clone, 17) == ALLOWED
    assert {verdict(program, machine, machine.clone, flag | 17) for flag in (0x10000000, 0x20000, 0x80)} == {EPERM}


def test_a_jail_whose_memory_nobody_counts_has_threads_only(name: str):
    machine = MACHINES[name]
    program = seccomp_program(single=True, machine=name)

    assert verdict(program, machine, machine.clone, 0x10000) == ALLOWED
    assert verdict(program, machine, machine.clone, 17) == EAGAIN
    assert {verdict(program, machine, number) for number in machine.forks} <= {EPERM}


def test_calls_of_another_architecture_end_the_code(name: str):
    machine = MACHINES[name]
    other = Machine(0x40000003, machine.socket, machine.clone, (), ())
    program = seccomp_program(single=False, machine=name)

    assert verdict(program, other, 1) == KILLED
    assert verdict(program, machine, 0x40000001) == KILLED


def test_a_processor_whose_numbers_are_not_known_has_no_jail():
    with pytest.raises(Unavailable, match="'riscv64'"):
        seccomp_program(single=False, machine="riscv64")
