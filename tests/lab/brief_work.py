"""Work for the harness, in a module that imports little: every worker process imports it."""

import os
import signal
import time

from fairbits.lab.run_settings import Settings


class Number(Settings):
    number: int


def double(job):
    return {"double": 2 * job.number, "process": os.getpid()}


def refuse(job):
    raise AssertionError(f"{job} has been done before")


def die(job):
    os.kill(os.getpid(), signal.SIGKILL)


def slowly(job):
    time.sleep(0.3)
    return {"double": 2 * job.number}


def outlive(server, job):
    os.kill(server, signal.SIGQUIT)  # PostgreSQL ends at once
    time.sleep(2)
    return double(job)
